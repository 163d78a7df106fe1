//! `et-trace`; see the library.

fn main() -> std::process::ExitCode {
    et_system::memory::keep_freed_blocks();
    et_trace::cli::main()
}
