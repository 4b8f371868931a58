//! Arguments → config → gateway → serve → exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    weir::cli::main()
}
