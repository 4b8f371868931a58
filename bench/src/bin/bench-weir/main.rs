//! `weir` with one more adapter, `noop`, that answers at once: the call path itself is what remains to be measured.

mod noop;

use std::process::ExitCode;

use weir_plugin_host::native;

fn main() -> ExitCode {
    native::install(noop::adapter());
    weir_cli::main(&[], None, None)
}
