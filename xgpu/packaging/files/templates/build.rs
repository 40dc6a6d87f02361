//! Builds the package's C source, for the GPU, or for the processor with the feature `host`.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const ARCHITECTURE: &str = "@ARCHITECTURE@";

fn do_run(command: &mut Command) {
    let status = command.status().unwrap_or_else(|error| panic!("{command:?} cannot be run: {error}"));
    assert!(status.success(), "{command:?} failed: {status}");
}

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where the crate is"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo says where to build"));
    let is_host = env::var_os("CARGO_FEATURE_HOST").is_some();
    let architecture = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    assert!(
        !is_host || architecture == ARCHITECTURE,
        "the host library was exported for {ARCHITECTURE}, and this build is for {architecture}"
    );
    let tool = |variable: &str, name: &str| env::var_os(variable).unwrap_or_else(|| name.into());
    let object = out.join("@P@.o");
    let mut compile = Command::new(tool("CC", "cc"));
    compile.args(["-std=c99", "-O2", "-fPIC", "-c", "-o"]).arg(&object).arg(root.join("src/@P@.c"));
    compile.arg("-I").arg(root.join("include"));
    if is_host {
        compile.arg("-D@U@_HOST");
    }
    do_run(&mut compile);
    let archive = out.join("libxgpu_@P@.a");
    if Path::new(&archive).exists() {
        std::fs::remove_file(&archive).expect("the last build's archive can be removed");
    }
    let mut collect = Command::new(tool("AR", "ar"));
    collect.arg("crs").arg(&archive).arg(&object);
    if is_host {
        collect.arg(root.join("src/@P@_host_@ARCHITECTURE@.o"));
    }
    do_run(&mut collect);
    println!("cargo:rustc-link-search=native={}", out.display());
    println!("cargo:rustc-link-lib=static=xgpu_@P@");
    for library in ["dl", "pthread", "m"] {
        println!("cargo:rustc-link-lib={library}");
    }
    for path in ["src", "include", "rust/build.rs"] {
        println!("cargo:rerun-if-changed={path}");
    }
}
