//! The trail in processes of their own: killed, side by side, and on a full disk.

mod crash;
mod full_disk;
#[path = "../steps/mod.rs"]
mod steps;

use steps::{append, call, check_whole, open, settings};
