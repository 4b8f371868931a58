//! Holds what the programs of this crate share: what the measured servers answer, and how they are asked.
#![allow(clippy::print_stdout, reason = "measurements are printed")]

pub mod load;
pub mod ticket;

/// Ends this process as one that is done, when it is told to: a build that counts writes its counts then.
pub fn exit_on_term() -> std::io::Result<()> {
    let mut term = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::spawn(async move {
        term.recv().await;
        std::process::exit(0)
    });
    Ok(())
}
