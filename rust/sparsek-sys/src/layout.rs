// SPDX-License-Identifier: Apache-2.0

//! Compares the structs with what a C compiler makes of the header. Only a checkout has the header.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::LAYOUTS;

#[test]
#[cfg_attr(miri, ignore = "runs a compiler")]
fn structs_are_laid_out_as_in_c() {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cutlass_ext/include");
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".into());
    if !include.join("sparsek.h").exists() || Command::new(&compiler).arg("--version").output().is_err() {
        eprintln!("skipped: there is no {} or no sparsek.h", compiler);
        return;
    }
    let mut source = String::from("#include <stdio.h>\n#include <sparsek.h>\nint main(void) {\n");
    for (expression, _) in LAYOUTS {
        writeln!(source, "printf(\"%zu\\n\", {expression});").unwrap();
    }
    source.push_str("return 0;\n}\n");

    let folder = env::temp_dir().join(format!("sparsek-layout-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let (file, program) = (folder.join("layout.c"), folder.join("layout"));
    fs::write(&file, source).unwrap();
    let compiled = Command::new(&compiler)
        .arg("-I")
        .arg(&include)
        .arg(&file)
        .arg("-o")
        .arg(&program)
        .output()
        .unwrap();
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
    let out = Command::new(&program).output().unwrap();
    fs::remove_dir_all(&folder).unwrap();

    let values: Vec<usize> = String::from_utf8(out.stdout)
        .unwrap()
        .lines()
        .map(|line| line.parse().unwrap())
        .collect();
    assert_eq!(values.len(), LAYOUTS.len());
    for ((expression, here), in_c) in LAYOUTS.iter().zip(values) {
        assert_eq!(*here, in_c, "{expression}");
    }
}

#[test]
fn a_default_is_zero_but_for_its_size() {
    let args = crate::sparsek_multiply_args::default();
    assert_eq!(args.abi_size, size_of_val(&args));
    assert!(args.b.is_null() && args.n == 0 && args.alpha == 0.0);
    let options = crate::sparsek_context_options::default();
    assert_eq!(options.abi_size, size_of_val(&options));
    assert!(options.allocate.is_none() && options.user.is_null());
}
