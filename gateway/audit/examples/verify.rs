//! Verifies a trail using only this crate: `cargo run -p weir-audit --example verify -- FOLDER [RECEIPT…]`.

use std::{env, io::stdout, path::PathBuf, process::ExitCode};

use weir_audit::{AuditReceipt, command};

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut arguments = env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("usage: verify FOLDER [RECEIPT…]")?);
    let receipts = arguments
        .map(|text| text.parse())
        .collect::<Result<Vec<AuditReceipt>, _>>()?;
    let whole = command::verify(&folder, &receipts, false, &mut stdout())?;
    Ok(if whole {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
