//! `et-allocate`; see the library.

fn main() -> std::process::ExitCode {
    et_allocate::main()
}
