//! `et-instrument`; see the library.

fn main() -> std::process::ExitCode {
    et_instrument::cli::main(std::env::args_os())
}
