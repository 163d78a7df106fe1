//! `et-collect`; see the library.

fn main() -> std::process::ExitCode {
    et_collect::main()
}
