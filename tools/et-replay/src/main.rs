//! `et-replay`; see the library.

fn main() -> std::process::ExitCode {
    et_replay::cli::main()
}
