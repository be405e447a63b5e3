// SPDX-License-Identifier: Apache-2.0

//! The library is that of SPARSEK_LIBRARY, a file or its folder. Without it, what needs it is skipped.

use std::ffi::{CStr, OsString};
use std::path::PathBuf;

use sparsek_sys::{LoadError, SPARSEK_OK, SPARSEK_WRONG_MEMORY, load, sparsek_api, sparsek_build_info};

fn library() -> Option<OsString> {
    let path = PathBuf::from(std::env::var_os("SPARSEK_LIBRARY")?);
    Some(if path.is_dir() {
        path.join("libsparsek.so").into()
    } else {
        path.into()
    })
}

#[test]
fn functions_are_where_the_bindings_have_them() {
    let Some(path) = library() else {
        eprintln!("skipped: SPARSEK_LIBRARY is not set");
        return;
    };
    let api = load(&path).unwrap();
    assert!(api.abi_size >= size_of::<sparsek_api>());
    let mut info = sparsek_build_info::default();
    // SAFETY: info has its size, and texts live as long as the library.
    unsafe {
        assert_eq!((api.build_info)(&mut info), SPARSEK_OK);
        assert_eq!(
            CStr::from_ptr(info.version).to_str().unwrap(),
            env!("CARGO_PKG_VERSION")
        );
        let name = CStr::from_ptr((api.status_name)(SPARSEK_WRONG_MEMORY));
        assert_eq!(name.to_str().unwrap(), "SPARSEK_WRONG_MEMORY");
    }
}

#[test]
fn a_file_that_is_no_library_is_an_error() {
    let file = std::env::temp_dir().join(format!("sparsek-text-{}.so", std::process::id()));
    std::fs::write(&file, "text").unwrap();
    let error = load(file.as_ref()).unwrap_err();
    std::fs::remove_file(&file).unwrap();
    assert!(matches!(error, LoadError::Loader { .. }));
    assert!(error.to_string().contains(".so cannot be loaded: "), "{error}");
    let error = load("libsparsek-that-is-nowhere.so".as_ref()).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("libsparsek-that-is-nowhere.so cannot be loaded: "),
        "{error}"
    );
}

#[test]
fn another_library_is_an_error() {
    let error = load("libc.so.6".as_ref()).unwrap_err();
    assert!(error.to_string().contains("sparsek_get_api"), "{error}");
}
