//! One bucket at one node: its own share, and the tokens that it holds from the ledger.

use crate::{
    level::{TokenLevel, TokenRate},
    request::LedgerGrant,
};

/// The part of a bucket that the nodes spend without asking.
const FREE_SHARE: f64 = 0.1;
/// The time over which it is counted how many tokens are used, in seconds.
const DEMAND_WINDOW: f64 = 0.05;
/// The time for which nothing is asked after there were not enough tokens.
const PAUSE: f64 = 0.05;
/// The time after which tokens that are not used go back.
const LEASE: f64 = 0.25;

/// The state of the other nodes and of the ledger, as known to this node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeMode {
    /// Moves with each change.
    pub number: u64,
    /// The nodes that share the rates, at least one.
    pub nodes: u32,
    /// The ledger cannot be reached.
    pub is_alone: bool,
    /// The time of the change.
    pub since: f64,
}

/// The decision about a request without asking the ledger.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TakeNow {
    Passed,
    /// Refused; a token is available in this many seconds.
    Refused(f64),
    /// The ledger has to be asked.
    Asks,
}

/// One bucket at one node.
#[derive(Clone, Debug)]
pub struct NodeBucket {
    rate: TokenRate,
    /// The tokens that the node may spend on its own.
    own: TokenLevel,
    /// The number of the mode that `own` is counted by.
    mode: u64,
    /// Tokens that were taken from the ledger and are not used.
    leased: u32,
    leased_at: f64,
    /// Tokens that were spent without the ledger and are not yet reported to it.
    owed: u32,
    window: f64,
    used: u32,
    used_before: u32,
    /// Nothing is asked before.
    paused_until: f64,
    /// When the ledger has a token again, as far as is known.
    token_at: f64,
}

impl NodeMode {
    /// A node that reaches the ledger.
    pub fn new(nodes: u32) -> Self {
        Self {
            number: 0,
            nodes: nodes.max(1),
            is_alone: false,
            since: 0.0,
        }
    }

    /// Returns the share of a bucket that a node spends without asking: none if that is less than one token.
    fn free_share(self, rate: TokenRate) -> f64 {
        let share = FREE_SHARE / f64::from(self.nodes);
        match rate.burst * share < 1.0 {
            true => 0.0,
            false => share,
        }
    }

    fn own_rate(self, rate: TokenRate) -> TokenRate {
        if !self.is_alone {
            return rate.times(self.free_share(rate));
        }
        let part = rate.times(1.0 / f64::from(self.nodes));
        // Less than one token would never become one.
        TokenRate {
            burst: part.burst.max(1.0),
            ..part
        }
    }

    /// Returns the part of a bucket that the ledger has.
    pub fn ledger_rate(self, rate: TokenRate) -> TokenRate {
        match self.free_share(rate) > 0.0 {
            true => rate.times(1.0 - FREE_SHARE),
            false => rate,
        }
    }
}

impl NodeBucket {
    /// Creates a bucket with its own share full and no token of the ledger. `now` is in seconds since the start of the
    /// node.
    pub fn new(rate: TokenRate, mode: NodeMode, now: f64) -> Self {
        // A bucket that was never used is as full as one from before the ledger became unreachable.
        let free = rate.times(mode.free_share(rate));
        Self {
            rate,
            own: TokenLevel {
                level: free.burst,
                at: if mode.is_alone { mode.since } else { now },
            },
            mode: mode.number,
            leased: 0,
            leased_at: now,
            owed: 0,
            window: now,
            used: 0,
            used_before: 0,
            paused_until: f64::NEG_INFINITY,
            token_at: f64::NEG_INFINITY,
        }
    }

    /// Returns the rate of the whole bucket, over all nodes.
    pub fn rate(&self) -> TokenRate {
        self.rate
    }

    /// Takes a token, if that can be done without asking.
    pub fn take(&mut self, mode: NodeMode, now: f64) -> TakeNow {
        self.refill(mode, now);
        if self.own.take(1) == 1 {
            self.note_use(now);
            if mode.is_alone {
                self.owed = self.owed.saturating_add(1);
            }
            return TakeNow::Passed;
        }
        if self.take_leased(now) {
            return TakeNow::Passed;
        }
        let own_wait = mode.own_rate(self.rate).wait(self.own.level);
        if mode.is_alone {
            return TakeNow::Refused(own_wait);
        }
        if now < self.paused_until {
            let wait = self.token_at.max(self.paused_until) - now;
            return TakeNow::Refused(wait.min(own_wait));
        }
        TakeNow::Asks
    }

    /// Takes one of the tokens that came from the ledger.
    pub fn take_leased(&mut self, now: f64) -> bool {
        if self.leased == 0 {
            return false;
        }
        self.leased -= 1;
        self.note_use(now);
        true
    }

    /// Returns how many tokens to ask for, with this many waiting requests: twice the recent use, of a small bucket no more
    /// than its present use, and the tokens that were spent without the ledger.
    pub fn wanted(&mut self, mode: NodeMode, waiting: u32, now: f64) -> u32 {
        self.turn_window(now);
        let part = mode.ledger_rate(self.rate);
        let ahead = match mode.free_share(self.rate) > 0.0 {
            true => self.used_lately(now) * 2.0,
            false => 0.0,
        };
        let most = part.burst.floor().max(1.0);
        let wanted = ahead.max(f64::from(waiting)) + f64::from(self.owed);
        wanted.min(most) as u32
    }

    /// Applies what the ledger granted for this many waiting requests, each of which then takes a token or is refused.
    pub fn grant(&mut self, mode: NodeMode, waiting: u32, grant: LedgerGrant, now: f64) {
        // A debt that the ledger cannot cover is forgotten: its bucket is empty.
        let owed = std::mem::take(&mut self.owed);
        let granted = grant.granted.saturating_sub(owed);
        self.leased = self.leased.saturating_add(granted);
        self.leased_at = now;
        if self.leased < waiting {
            let wait = mode.ledger_rate(self.rate).wait(grant.level);
            self.token_at = now + wait;
            let pause = match mode.free_share(self.rate) > 0.0 {
                true => PAUSE,
                false => PAUSE.min(wait),
            };
            self.paused_until = now + pause;
        }
    }

    /// Takes a token back that was not needed.
    pub fn give_back(&mut self, now: f64) {
        if f64::from(self.leased) < self.rate.burst {
            self.leased += 1;
            self.leased_at = now;
        }
    }

    /// Returns tokens that were not used in their time, which are the ledger's again.
    pub fn take_unused(&mut self, now: f64) -> u32 {
        match now - self.leased_at >= LEASE {
            true => std::mem::take(&mut self.leased),
            false => 0,
        }
    }

    /// Returns whether there are tokens that may have to go back.
    pub fn has_leased(&self) -> bool {
        self.leased > 0
    }

    fn refill(&mut self, mode: NodeMode, now: f64) {
        let own = mode.own_rate(self.rate);
        if self.mode != mode.number {
            // The time in between is unknown: the smaller share is safe.
            let free = self.rate.times(mode.free_share(self.rate));
            let before = TokenRate {
                burst: self.own.level.max(own.burst),
                ..free
            };
            self.own.refill(before, mode.since.min(now));
            self.mode = mode.number;
        }
        self.own.refill(own, now);
    }

    fn note_use(&mut self, now: f64) {
        self.turn_window(now);
        self.used = self.used.saturating_add(1);
    }

    fn turn_window(&mut self, now: f64) {
        let passed = now - self.window;
        if passed >= DEMAND_WINDOW {
            let is_next = passed < 2.0 * DEMAND_WINDOW;
            self.used_before = if is_next { self.used } else { 0 };
            self.used = 0;
            self.window = if is_next {
                self.window + DEMAND_WINDOW
            } else {
                now
            };
        }
    }

    /// Returns the use within the last window: of the one before it, the part that it reaches into.
    fn used_lately(&self, now: f64) -> f64 {
        let part = 1.0 - ((now - self.window) / DEMAND_WINDOW).clamp(0.0, 1.0);
        f64::from(self.used_before) * part + f64::from(self.used)
    }
}
