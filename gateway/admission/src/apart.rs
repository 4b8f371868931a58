//! Tells the scheduler which threads answer, and runs long work in others.

use std::{cell::Cell, io, num::NonZero, panic::resume_unwind, sync::LazyLock, thread};

use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::{Semaphore, SemaphorePermit},
    task::{self, JoinError},
};

/// The niceness of these threads: a tenth of a core if others need all of it.
#[cfg(target_os = "linux")]
const GIVES_WAY: i32 = 10;

/// The bytes of an answer or a message above which it takes long to read and to write: a megabyte takes milliseconds.
pub const LARGE_BYTES: usize = 256 << 10;

static TURNS: LazyLock<Semaphore> = LazyLock::new(long_work_turns);
/// The work that has a turn or waits for one: each piece holds the bytes of a large answer.
static PIECES: Semaphore = Semaphore::const_new(16);

thread_local! {
    /// Whether this thread gives way.
    static GIVES_WAY_HERE: Cell<bool> = const { Cell::new(false) };
}

/// Returns turns for half of the processors, so that there are always some for other requests.
pub fn long_work_turns() -> Semaphore {
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    Semaphore::new((processors / 2).max(1))
}

/// Makes the scheduler run this thread soon after it wakes, for short times. Threads and processes that it starts begin without
/// this.
pub fn run_soon() {
    #[cfg(target_os = "linux")]
    linux::set_slice(linux::SHORT_SLICE_NS);
}

/// Makes the scheduler prefer all other threads to this one. It cannot be undone without privileges.
///
/// The niceness decides only the share of each. A thread that wakes would still wait until the running one has had its time
/// slice: it does not wait for one with a longer slice, such as this one gets.
pub fn give_way() -> io::Result<()> {
    // The priority is that of this thread only, which can be set only on Linux.
    #[cfg(target_os = "linux")]
    {
        rustix::process::nice(GIVES_WAY)?;
        GIVES_WAY_HERE.set(true);
        linux::set_slice(linux::LONG_SLICE_NS);
    }
    Ok(())
}

/// Runs work that blocks in a thread of the runtime, with the priority of those that answer, from a thread that gives way as
/// well: a thread that it started itself would give way too, and be used for the work of others afterwards.
pub async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    if GIVES_WAY_HERE.get() {
        let waits = async { task::spawn_blocking(work).await };
        return task::spawn(waits).await?;
    }
    task::spawn_blocking(work).await
}

/// The right to run work that takes long in a thread that gives way.
pub struct ApartTurn(Option<ApartPermits>);

/// The piece of work, and its turn.
type ApartPermits = (SemaphorePermit<'static>, SemaphorePermit<'static>);

impl ApartTurn {
    /// Waits for a turn. If many wait already, the work runs on the current thread instead: waiting work holds memory, and
    /// gets less processor time than the threads that bring more of it.
    pub async fn wait() -> Self {
        let Ok(piece) = PIECES.try_acquire() else {
            return Self(None);
        };
        let turn = TURNS.acquire().await;
        Self(turn.ok().map(|turn| (piece, turn)))
    }

    /// Runs work of milliseconds in a new thread, while other requests of this thread run. Outside a runtime that could run them
    /// in the meantime, it runs here.
    pub fn run<T: Send>(self, work: impl FnOnce() -> T + Send) -> T {
        match Handle::try_current() {
            Ok(runtime)
                if self.0.is_some() && runtime.runtime_flavor() == RuntimeFlavor::MultiThread =>
            {
                task::block_in_place(|| run_in_thread(&runtime, work))
            }
            _ => work(),
        }
    }
}

fn run_in_thread<T: Send>(runtime: &Handle, work: impl FnOnce() -> T + Send) -> T {
    let mut work = Some(work);
    let ended = thread::scope(|scope| {
        let running = || {
            let _ = give_way(); // it runs with the priority of the others then
            let _within = runtime.enter();
            work.take().map(|work| work())
        };
        let thread = thread::Builder::new().name("weir-apart".to_owned());
        let thread = thread.spawn_scoped(scope, running)?;
        io::Result::Ok(thread.join())
    });
    match ended {
        Ok(Ok(Some(done))) => done,
        Ok(Err(panic)) => resume_unwind(panic),
        // No thread can be made now.
        Ok(Ok(None)) | Err(_) => work.take().expect("it has not run")(),
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use rustix::process::getpriority_process;

    /// The time slices of a thread that gives way and of one that answers. On its own the scheduler uses 0.7 to 3 ms, depending
    /// on the number of processors. A thread that wakes takes the core from one with a longer slice.
    pub(super) const LONG_SLICE_NS: u64 = 20_000_000;
    pub(super) const SHORT_SLICE_NS: u64 = 400_000;

    /// Returns the policy of this thread.
    #[expect(
        unsafe_code,
        reason = "no safe crate has this call, and that of musl does nothing"
    )]
    pub(super) fn policy() -> i64 {
        // SAFETY: it only reads.
        unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) }
    }

    /// Asks the scheduler for a time slice. Kernels before 6.12 have none of single threads, and take this as it is.
    #[expect(unsafe_code, reason = "no safe crate has these calls")]
    pub(super) fn set_slice(slice_ns: u64) {
        let Ok(niceness) = getpriority_process(None) else {
            return;
        };
        // Any other policy is a choice of the operator's, and so is a priority that the threads that are started would lose.
        if policy() != i64::from(libc::SCHED_OTHER) || niceness < 0 {
            return;
        }
        let attributes = libc::sched_attr {
            size: size_of::<libc::sched_attr>() as u32,
            sched_policy: libc::SCHED_OTHER as u32,
            sched_flags: libc::SCHED_FLAG_RESET_ON_FORK as u64,
            sched_nice: niceness,
            sched_priority: 0,
            sched_runtime: slice_ns,
            sched_deadline: 0,
            sched_period: 0,
        };
        // SAFETY: the kernel reads the attributes, whose size they hold, and changes only this thread. If it refuses, the
        // thread keeps its slices.
        unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    }
}

#[cfg(test)]
mod tests {
    use std::{panic::catch_unwind, sync::mpsc, time::Duration};

    use tokio::runtime::{Builder, Runtime};

    use super::*;

    fn runtime() -> Runtime {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(1).build().expect("a runtime")
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn work_gives_way_and_the_thread_that_waits_for_it_does_not() {
        let niceness = || rustix::process::getpriority_process(None).expect("a niceness");
        let task = async move {
            let turn = ApartTurn::wait().await;
            (niceness(), turn.run(niceness), niceness())
        };
        let runtime = runtime();
        let task = runtime.spawn(task);
        let (before, apart, after) = runtime.block_on(task).expect("it ends");
        assert_eq!(apart, (before + GIVES_WAY).min(19));
        assert_eq!(after, before);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn work_that_blocks_has_the_usual_priority() {
        let niceness = || rustix::process::getpriority_process(None).expect("a niceness");
        let runtime = runtime();
        let usual = runtime.block_on(runtime.spawn(async move { niceness() }));
        let handle = runtime.handle().clone();
        let blocking = thread::spawn(move || {
            give_way().expect("it may");
            handle.block_on(run_blocking(niceness))
        });
        let blocking = blocking.join().expect("it ends");
        assert_eq!(blocking.expect("it ends"), usual.expect("it ends"));
    }

    /// With one thread for all requests, the work ends only if another request is answered meanwhile.
    #[test]
    fn other_requests_go_on_meanwhile() {
        let runtime = runtime();
        let (answered, answer) = mpsc::channel();
        let (began, begin) = tokio::sync::oneshot::channel();
        let work = runtime.spawn(async move {
            ApartTurn::wait().await.run(move || {
                began.send(()).expect("the other request waits");
                answer.recv_timeout(Duration::from_secs(20))
            })
        });
        let other = runtime.spawn(async move {
            begin.await.expect("the work begins");
            answered.send(()).expect("the work waits");
        });
        runtime.block_on(async move {
            let answer = work.await.expect("it ends");
            answer.expect("the other was answered");
            other.await.expect("it ends");
        });
    }

    #[test]
    fn a_panic_is_one_of_the_thread_that_waits() {
        let runtime = runtime();
        let task = async {
            ApartTurn::wait()
                .await
                .run(|| -> u8 { panic!("of the work") })
        };
        let task = runtime.spawn(task);
        let ended = runtime.block_on(task).expect_err("it panicked");
        let text = ended.into_panic();
        assert_eq!(text.downcast_ref::<&str>(), Some(&"of the work"));
    }

    #[test]
    fn without_a_runtime_it_runs_at_once() {
        let here = thread::current().id();
        assert_eq!(ApartTurn(None).run(|| thread::current().id()), here);
        assert!(catch_unwind(|| ApartTurn(None).run(|| -> u8 { panic!() })).is_err());
    }

    /// Each kind of thread has its own slice, and the threads that it starts do not inherit it.
    #[cfg(target_os = "linux")]
    #[test]
    fn slices_are_of_one_thread() {
        let policy = |prepare: fn()| {
            thread::spawn(move || {
                prepare();
                (linux::policy(), thread::spawn(linux::policy).join())
            })
            .join()
            .expect("it ends")
        };
        let changed = i64::from(libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK);
        for prepare in [run_soon, || give_way().expect("it may")] {
            let (own, started) = policy(prepare);
            let started = started.expect("it ends");
            assert_eq!((own, started), (changed, i64::from(libc::SCHED_OTHER)));
        }
    }
}
