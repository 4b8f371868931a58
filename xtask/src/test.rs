//! `cargo xtask test`: everything that must hold, in the order in which it fails cheapest.

use std::thread;

use crate::{
    bench, clients, console, docs, earlier, package, plugins, step::StepFailure,
    workshop::XtaskContext,
};

pub(crate) fn run(workshop: &XtaskContext) -> Result<(), StepFailure> {
    let result = stages(workshop);
    workshop.steps.summary();
    result
}

/// Runs the stages, with one feature set and one profile throughout: any other selection builds Cranelift again.
fn stages(workshop: &XtaskContext) -> Result<(), StepFailure> {
    let steps = &workshop.steps;
    steps.command("format", &mut workshop.cargo(&["fmt", "--all", "--check"]))?;
    // Clients are fetched, and the console and the documentation are built, while cargo builds: one waits for the network, the other for the processor. The end of the build is
    // few crates, which leave a core to the plugins.
    thread::scope(|scope| {
        let clients = scope.spawn(|| {
            clients::prepare(workshop)?;
            console::check(workshop)?;
            docs::build(workshop).map(drop)
        });
        let plugins = scope.spawn(|| plugins::run(workshop, false));
        let build = steps.command("build", &mut workshop.cargo(plugins::WORKSPACE));
        let plugins = plugins
            .join()
            .unwrap_or_else(|_| Err("building the plugins panicked".into()));
        let clients = clients
            .join()
            .unwrap_or_else(|_| Err("preparing the clients panicked".into()));
        build.and(plugins).and(clients)
    })?;
    plugins::link(workshop, plugins::WORKSPACE)?;
    // The compilers of other languages have one thread each, which leaves a core to the lints.
    let lints = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ];
    beside(
        || plugins::guests(workshop).and_then(|()| package::for_tests(workshop)),
        || steps.command("lints", &mut workshop.cargo(&lints)),
    )?;
    let mut tests = workshop.cargo(&["test", "--workspace", "--all-targets", "--locked"]);
    steps.tests("tests", tests.env("RUST_TEST_THREADS", threads()))?;
    // Instructions are counted by one thread, and other work changes a count by less than one in a hundred.
    let documentation = ["test", "--workspace", "--doc", "--locked"];
    beside(
        || steps.command("documentation tests", &mut workshop.cargo(&documentation)),
        || bench::instructions(workshop),
    )
}

/// Does two things at once, and both to their end.
fn beside(
    one: impl FnOnce() -> Result<(), StepFailure> + Send,
    other: impl FnOnce() -> Result<(), StepFailure>,
) -> Result<(), StepFailure> {
    thread::scope(|scope| {
        let one = scope.spawn(one);
        let other = other();
        one.join()
            .unwrap_or_else(|_| Err("a step panicked".into()))
            .and(other)
    })
}

/// Returns the number of tests that run at once: two more than there are cores, since most of them wait for the servers that
/// they start. With one more the suites take half as long again on two cores.
fn threads() -> String {
    (thread::available_parallelism().map_or(1, usize::from) + 2).to_string()
}

/// Tests only the agent frameworks, including those that [`run`] leaves out.
pub(crate) fn frameworks(workshop: &XtaskContext) -> Result<(), StepFailure> {
    let steps = &workshop.steps;
    clients::prepare(workshop)?;
    clients::prepare_frameworks(workshop)?;
    steps.command("build", &mut workshop.cargo(plugins::WORKSPACE))?;
    plugins::run(workshop, false)?;
    plugins::link(workshop, plugins::WORKSPACE)?;
    let usual = [
        "test",
        "--workspace",
        "--locked",
        "--test",
        "suites",
        "frameworks::",
    ];
    let large = ["test", "--workspace", "--locked", "--test", "frameworks"];
    let result = steps
        .tests("frameworks", &mut workshop.cargo(&usual))
        .and(steps.tests("large frameworks", &mut workshop.cargo(&large)));
    steps.summary();
    result
}

/// Tests only a fleet, with as many rounds as it takes to trust the result, and with nodes of an earlier program.
pub(crate) fn cluster(workshop: &XtaskContext) -> Result<(), StepFailure> {
    let steps = &workshop.steps;
    clients::prepare(workshop)?;
    console::check(workshop)?;
    plugins::run(workshop, false)?;
    let earlier = earlier::build(workshop)?;
    steps.command("build", &mut workshop.cargo(plugins::WORKSPACE))?;
    plugins::link(workshop, plugins::WORKSPACE)?;
    let suite = |name| {
        let words = ["test", "--workspace", "--locked", "--test", "suites", name];
        let mut suite = workshop.cargo(&words);
        suite
            .env("WEIR_MANY_ROUNDS", "1")
            .env("WEIR_OFFER_SECONDS", "60");
        if let Some(program) = &earlier {
            suite.env("WEIR_EARLIER_PROGRAM", program);
        }
        suite
    };
    let result = ["cluster::", "nodes::", "shared_limits::"]
        .into_iter()
        // A test of hundreds of rounds prints nothing for long.
        .map(|name| steps.streamed(name, &mut suite(name)))
        .fold(Ok(()), Result::and);
    steps.summary();
    result
}

/// Runs only the last stage.
pub(crate) fn instructions(workshop: &XtaskContext) -> Result<(), StepFailure> {
    workshop
        .steps
        .command("build", &mut workshop.cargo(plugins::WORKSPACE))?;
    bench::instructions(workshop)
}

/// Prints the figures of the code.
pub(crate) fn figures(workshop: &XtaskContext) -> Result<(), StepFailure> {
    let figures = [
        "test",
        "--workspace",
        "--locked",
        "--test",
        "tidy",
        "figures_only_fall",
        "--",
        "--nocapture",
    ];
    workshop
        .steps
        .streamed("figures", &mut workshop.cargo(&figures))
}
