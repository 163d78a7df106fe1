//! `et-monitor`; see the library.

fn main() -> std::process::ExitCode {
    et_monitor_cli::cli::main()
}
