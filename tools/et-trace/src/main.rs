//! `et-trace`; see the library.

fn main() -> std::process::ExitCode {
    et_trace::cli::main()
}
