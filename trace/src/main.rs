//! `et-trace`: reads traces. All of it is in the library.

fn main() -> std::process::ExitCode {
    et_trace::cli::main()
}
