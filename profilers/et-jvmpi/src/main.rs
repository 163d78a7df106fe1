//! `et-jvmpi`; see the library.

fn main() -> std::process::ExitCode {
    et_jvmpi_cli::cli::main()
}
