// SPDX-License-Identifier: Apache-2.0

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use sparsek_sys as sys;

use crate::{Error, Result};

const NAME: &str = "libsparsek.so";
const VARIABLE: &str = "SPARSEK_LIBRARY";

struct Library {
    api: &'static sys::sparsek_api,
    path: PathBuf,
}

static LOADED: OnceLock<Library> = OnceLock::new();
static LOADING: Mutex<()> = Mutex::new(());

/// The file of the library in use, which this loads unless it is loaded. A bare name is one that the dynamic loader
/// found by its own search.
///
/// The first file that exists is taken:
///
/// 1. `SPARSEK_LIBRARY`, a file or a folder. Where it is set, nothing else is tried.
/// 2. `../lib/libsparsek.so` and `./libsparsek.so`, seen from the executable, symbolic links followed.
/// 3. `build/lib/libsparsek.so` in the working folder or above it, up to the first folder with a `go.mod`, which is that
///    of a checkout of sparsek. Where there is none, not at all.
/// 4. `/usr/local/lib`, `/usr/local/lib64`, `/usr/lib64`, `/usr/lib`.
/// 5. The dynamic loader's own list: `LD_LIBRARY_PATH`, then the loader's cache.
///
/// # Errors
///
/// [`Error::Library`], with the files that were tried. A file that exists and does not load ends the search. A later
/// call searches again.
pub fn library_path() -> Result<&'static Path> {
    Ok(&library()?.path)
}

pub(crate) fn api() -> Result<&'static sys::sparsek_api> {
    Ok(library()?.api)
}

fn library() -> Result<&'static Library> {
    if let Some(library) = LOADED.get() {
        return Ok(library);
    }
    let _one = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(library) = LOADED.get() {
        return Ok(library);
    }
    let found = find(env::var_os(VARIABLE).as_deref())?;
    Ok(LOADED.get_or_init(|| found))
}

fn find(named: Option<&OsStr>) -> Result<Library> {
    if let Some(named) = named.filter(|named| !named.is_empty()) {
        let path = PathBuf::from(named);
        let path = if path.is_dir() { path.join(NAME) } else { path };
        if !path.exists() {
            let (named, path) = (named.display(), path.display());
            return Err(Error::Library(format!(
                "{VARIABLE}={named}: there is no {path}: name the file {NAME} or its folder"
            )));
        }
        return load(&path);
    }
    let mut tried = String::new();
    for path in candidates() {
        if path.exists() {
            return load(&path);
        }
        tried += &format!("\n\t{}", path.display());
    }
    match sys::load(NAME.as_ref()) {
        Ok(api) => Ok(Library { api, path: NAME.into() }),
        Err(sys::LoadError::Loader { reason, .. }) => Err(Error::Library(format!(
            "{NAME} not found: build it, or set {VARIABLE} to the file or its folder; tried:{tried}\n\t{NAME} (the loader \
             says: {reason})"
        ))),
        Err(other) => Err(Error::Library(other.to_string())),
    }
}

fn load(path: &Path) -> Result<Library> {
    // Made absolute: the loader would search elsewhere for a name without a slash.
    let path = std::path::absolute(path).map_err(|error| Error::Library(format!("{}: {error}", path.display())))?;
    match sys::load(path.as_os_str()) {
        Ok(api) => Ok(Library { api, path }),
        Err(error) => Err(Error::Library(error.to_string())),
    }
}

fn candidates() -> Vec<PathBuf> {
    let mut list = Vec::new();
    if let Ok(executable) = env::current_exe() {
        let executable = executable.canonicalize().unwrap_or(executable);
        if let Some(folder) = executable.parent() {
            list.push(folder.join("../lib").join(NAME));
            list.push(folder.join(NAME));
        }
    }
    if let Ok(folder) = env::current_dir() {
        list.extend(build_folders(&folder));
    }
    for folder in ["/usr/local/lib", "/usr/local/lib64", "/usr/lib64", "/usr/lib"] {
        list.push(Path::new(folder).join(NAME));
    }
    list
}

/// `build/lib` from a folder up to the first one with a `go.mod`. Elsewhere there is none: a library must not be picked
/// up from wherever a program happens to be started.
fn build_folders(folder: &Path) -> Vec<PathBuf> {
    let mut list = Vec::new();
    for folder in folder.ancestors() {
        list.push(folder.join("build/lib").join(NAME));
        if folder.join("go.mod").exists() {
            return list;
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(named: &str) -> String {
        match find(Some(named.as_ref())) {
            Err(Error::Library(text)) => text,
            Err(other) => panic!("{other:?}"),
            Ok(_) => panic!("{named} was loaded"),
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "calls the dynamic loader")]
    fn a_missing_library_says_what_to_do() {
        assert_eq!(
            message("/no/such/folder"),
            "SPARSEK_LIBRARY=/no/such/folder: there is no /no/such/folder: name the file libsparsek.so or its folder"
        );
        let folder = env::temp_dir().join(format!("sparsek-no-library-{}", std::process::id()));
        let file = folder.join("no-library.so");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(&file, "text").unwrap();
        let (of_folder, of_file) = (message(folder.to_str().unwrap()), message(file.to_str().unwrap()));
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(
            of_folder.contains(&format!("there is no {}/libsparsek.so", folder.display())),
            "{of_folder}"
        );
        assert!(of_file.contains("no-library.so cannot be loaded: "), "{of_file}");
    }

    #[test]
    #[cfg_attr(miri, ignore = "makes files")]
    fn a_build_is_found_in_a_checkout_alone() {
        assert!(build_folders(Path::new("/no/such/folder")).is_empty());
        let folder = env::temp_dir().join(format!("sparsek-search-{}", std::process::id()));
        let inner = folder.join("a/b");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::write(folder.join("go.mod"), "").unwrap();
        let found = build_folders(&inner);
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found.len(), 3);
        assert_eq!(found[2], folder.join("build/lib/libsparsek.so"));
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks for the folder of the program")]
    fn system_folders_come_last() {
        let list = candidates();
        assert!(list.len() >= 6);
        assert_eq!(list[list.len() - 4], Path::new("/usr/local/lib/libsparsek.so"));
        assert!(list[0].ends_with("../lib/libsparsek.so"));
    }
}
