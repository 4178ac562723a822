//! The name by which programs remember the shared library.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        // Before 1.0 every minor version may break.
        let [major, minor] =
            ["CARGO_PKG_VERSION_MAJOR", "CARGO_PKG_VERSION_MINOR"].map(|name| std::env::var(name).unwrap_or_default());
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libblocktri.so.{major}.{minor}");
    }
}
