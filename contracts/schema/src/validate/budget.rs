//! The steps that one call may take for its checks, counted per thread: a check is one call on one thread, and the keywords
//! that count have no other place to look at.

use std::cell::Cell;

/// Steps of patterns that look around, in one call: a step back in the search, times the length of the text.
const LOOKING_STEPS: u64 = 40_000_000;

#[derive(Clone, Copy)]
struct RemainingSteps {
    steps: u64,
    looking: u64,
    is_spent: bool,
}

thread_local! {
    static LEFT: Cell<Option<RemainingSteps>> = const { Cell::new(None) };
}

/// A budget for all checks of this thread until it is dropped.
pub(super) struct StepBudget(Option<RemainingSteps>);

impl StepBudget {
    pub(super) fn start(steps: u64) -> Self {
        let left = RemainingSteps {
            steps,
            looking: LOOKING_STEPS,
            is_spent: false,
        };
        Self(LEFT.replace(Some(left)))
    }
}

impl Drop for StepBudget {
    fn drop(&mut self) {
        LEFT.set(self.0);
    }
}

/// Takes steps from the budget. Returns `false` if fewer are left, and from then on.
pub(super) fn take(steps: u64) -> bool {
    let Some(mut left) = LEFT.get() else {
        return true;
    };
    match left.steps.checked_sub(steps).filter(|_| !left.is_spent) {
        Some(rest) => left.steps = rest,
        None => left.is_spent = true,
    }
    LEFT.set(Some(left));
    !left.is_spent
}

/// Takes steps of a pattern that looks around. If fewer are left, the pattern is not judged, and the check continues.
pub(super) fn take_looking(steps: u64) -> bool {
    let Some(mut left) = LEFT.get() else {
        return steps <= LOOKING_STEPS;
    };
    let rest = left.looking.checked_sub(steps);
    left.looking = rest.unwrap_or(left.looking);
    LEFT.set(Some(left));
    rest.is_some()
}

/// Returns `true` if a check needed more steps than the budget had: its result means nothing.
pub(super) fn is_spent() -> bool {
    LEFT.get().is_some_and(|left| left.is_spent)
}
