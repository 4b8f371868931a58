//! Debian packages: installed only where something is missing, lists fetched once.

use std::{
    process::{Command, Stdio},
    sync::Mutex,
};

use crate::{step::StepFailure, workshop::XtaskContext};

/// Whether the lists are fresh. It is locked, since apt takes one job at a time.
static LISTS_FRESH: Mutex<bool> = Mutex::new(false);

/// Installs `packages` unless `present` finds that their contents are there already.
pub(crate) fn ensure(
    workshop: &XtaskContext,
    packages: &[&str],
    present: impl Fn() -> bool,
) -> Result<(), StepFailure> {
    if present() {
        return Ok(());
    }
    let wanted = packages.join(" ");
    if !succeeds(Command::new("apt-get").arg("--version")) {
        return Err(
            format!("please install {wanted}: there is no apt-get here to do it with").into(),
        );
    }
    let mut fresh = LISTS_FRESH
        .lock()
        .expect("no step panics while it holds apt");
    if !*fresh {
        workshop
            .steps
            .command("apt lists", apt(workshop).args(["update", "-qq"]))?;
        *fresh = true;
    }
    let mut install = apt(workshop);
    install
        .args(["install", "-y", "-qq", "--no-install-recommends"])
        .args(packages);
    workshop
        .steps
        .command(&format!("apt install {wanted}"), &mut install)?;
    if present() {
        Ok(())
    } else {
        Err(format!("{wanted} were installed, yet something of them is missing").into())
    }
}

/// Returns `true` if the command can be run and succeeds.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
}

fn apt(workshop: &XtaskContext) -> Command {
    let root = Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|output| output.stdout == b"0\n");
    let mut command = if root {
        workshop.command("apt-get")
    } else {
        let mut sudo = workshop.command("sudo");
        sudo.args(["DEBIAN_FRONTEND=noninteractive", "apt-get"]);
        sudo
    };
    // Another apt (an unattended upgrade) may hold the lock on a fresh machine: wait for it.
    command
        .env("DEBIAN_FRONTEND", "noninteractive")
        .args(["-o", "DPkg::Lock::Timeout=300"]);
    command
}
