//! Nodes over one ledger, in a time that the test makes: what passes of a rate, and how often the ledger is asked. The figures
//! of `docs/decisions/limits-of-several-nodes.md` are printed with `--nocapture`.

#![expect(clippy::print_stdout, reason = "the figures are read by people")]

use std::time::Duration;

use proptest::prelude::*;
use weir_ledger::{
    MemoryLedger, NodeBucket, NodeMode, TakeNow, TokenLevel, TokenRate, TokenRequest,
};

const ID: [u8; 16] = [7; 16];
/// The time between two steps, in seconds.
const STEP: f64 = 0.001;
/// The steps between two batches of a node.
const BATCH_STEPS: usize = 10;

struct SimulatedNode {
    bucket: NodeBucket,
    waiting: u32,
    /// The part of a request that has come so far.
    due: f64,
}

struct Simulation {
    nodes: Vec<SimulatedNode>,
    ledger: MemoryLedger,
    mode: NodeMode,
    rate: TokenRate,
    now: f64,
    step: usize,
    /// A bucket of one process, which may be overdrawn.
    reference: TokenLevel,
    offered: u64,
    passed: u64,
    trips: u64,
    overdrawn: f64,
}

impl Simulation {
    fn new(count: u32, rate: TokenRate) -> Self {
        let mode = NodeMode::new(count);
        let node = |_| SimulatedNode {
            bucket: NodeBucket::new(rate, mode, 0.0),
            waiting: 0,
            due: 0.0,
        };
        Self {
            nodes: (0..count).map(node).collect(),
            ledger: MemoryLedger::default(),
            mode,
            rate,
            now: 0.0,
            step: 0,
            reference: TokenLevel {
                level: rate.burst,
                at: 0.0,
            },
            offered: 0,
            passed: 0,
            trips: 0,
            overdrawn: 0.0,
        }
    }

    fn set_away(&mut self, is_away: bool) {
        if self.mode.is_alone != is_away {
            self.mode = NodeMode {
                number: self.mode.number + 1,
                is_alone: is_away,
                since: self.now,
                ..self.mode
            };
        }
    }

    /// Goes on for one step, in which each node is asked so often.
    fn advance(&mut self, asked: impl Fn(usize) -> f64) {
        self.now += STEP;
        self.step += 1;
        self.reference.refill(self.rate, self.now);
        let mut passed = 0;
        for (index, node) in self.nodes.iter_mut().enumerate() {
            node.due += asked(index) * STEP;
            while node.due >= 1.0 {
                node.due -= 1.0;
                self.offered += 1;
                match node.bucket.take(self.mode, self.now) {
                    TakeNow::Passed => passed += 1,
                    TakeNow::Refused(_) => {}
                    TakeNow::Asks => node.waiting += 1,
                }
            }
            // Nodes do not ask at the same time.
            if (self.step + index).is_multiple_of(BATCH_STEPS) {
                passed += batch(node, &mut self.ledger, self.mode, self.now, &mut self.trips);
            }
        }
        self.passed += passed;
        self.reference.level -= passed as f64;
        self.overdrawn = self.overdrawn.max(-self.reference.level);
    }

    fn run(&mut self, seconds: f64, asked: impl Fn(usize) -> f64) {
        for _ in 0..(seconds / STEP) as usize {
            self.advance(&asked);
        }
    }

    /// Returns what passed, of what one bucket lets pass of this.
    fn part(&self) -> f64 {
        let one = self.rate.burst + self.rate.per_second * self.now;
        self.passed as f64 / one.min(self.offered as f64)
    }
}

/// Sends what a node has to ask. Returns how many of those who waited pass.
fn batch(
    node: &mut SimulatedNode,
    ledger: &mut MemoryLedger,
    mode: NodeMode,
    now: f64,
    trips: &mut u64,
) -> u64 {
    let rate = mode.ledger_rate(node.bucket.rate());
    let request = |wanted, given_back| TokenRequest {
        id: ID,
        rate,
        wanted,
        given_back,
    };
    let waiting = std::mem::take(&mut node.waiting);
    if mode.is_alone {
        let alone = (0..waiting).filter(|_| node.bucket.take(mode, now) == TakeNow::Passed);
        return alone.count() as u64;
    }
    if waiting > 0 {
        *trips += 1;
        let wanted = node.bucket.wanted(mode, waiting, now);
        let grant = ledger.apply(&[request(wanted, 0)], now)[0];
        node.bucket.grant(mode, waiting, grant, now);
        return (0..waiting)
            .filter(|_| node.bucket.take_leased(now))
            .count() as u64;
    }
    let unused = node.bucket.take_unused(now);
    if unused > 0 {
        *trips += 1;
        ledger.apply(&[request(0, unused)], now);
    }
    0
}

fn per_second(tokens: u32) -> TokenRate {
    TokenRate::new(tokens, Duration::from_secs(1))
}

#[test]
fn what_is_asked_of_several_nodes_passes_as_of_one() {
    println!("| nodes | asked | passed, of one bucket | worst excess, in bursts | trips a call |");
    println!("|---|---|---|---|---|");
    for (count, words, of_first, of_others) in [
        (20, "5000/s spread", 250.0, 250.0),
        (3, "5000/s spread", 1667.0, 1667.0),
        (20, "5000/s on one node", 5000.0, 0.0),
        (20, "900/s on one node", 900.0, 0.0),
        (3, "900/s on one node", 900.0, 0.0),
        (20, "1/s spread", 0.05, 0.05),
    ] {
        let mut simulation = Simulation::new(count, per_second(1000));
        simulation.run(30.0, |index| if index == 0 { of_first } else { of_others });
        let (part, trips) = (
            simulation.part(),
            simulation.trips as f64 / simulation.offered as f64,
        );
        let excess = simulation.overdrawn / simulation.rate.burst;
        println!(
            "| {count} | {words} | {:.1} % | {excess:.3} | {trips:.3} |",
            part * 100.0
        );
        assert!((0.9..=1.0).contains(&part), "{words}: {part}");
        assert!(excess <= 0.1, "{words}: {excess}");
    }
}

#[test]
fn a_small_rate_is_counted_as_by_one_process() {
    let rate = TokenRate::new(10, Duration::from_secs(60));
    let mut simulation = Simulation::new(3, rate);
    simulation.run(120.0, |_| 2.0);
    assert_eq!(
        simulation.passed, 29,
        "the burst, and one each 6 s after it"
    );
    assert!(simulation.overdrawn < 1e-6);
}

#[test]
fn an_outage_costs_no_more_than_one_burst() {
    println!("| outage | passed, of one bucket | worst excess, in bursts |");
    println!("|---|---|---|");
    for (words, away, there) in [("half of the time", 1.0, 1.0), ("10 s of 30", 10.0, 20.0)] {
        let mut simulation = Simulation::new(20, per_second(1000));
        let mut outages = 0.0;
        while simulation.now < 60.0 {
            simulation.set_away(false);
            simulation.run(there, |_| 250.0);
            simulation.set_away(true);
            simulation.run(away, |_| 250.0);
            outages += 1.0;
        }
        simulation.set_away(false);
        simulation.run(2.0, |_| 250.0);
        let most = 1000.0 * (1.0 + outages + simulation.now);
        let excess = simulation.overdrawn / 1000.0;
        println!(
            "| {words} | {:.1} % | {excess:.2} |",
            simulation.part() * 100.0
        );
        assert!((simulation.passed as f64) <= most, "{words}");
        assert!(excess <= 2.0, "{words}: {excess}");
        assert!(simulation.part() >= 0.9, "{words}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is asked of whichever node, and however long: in all, no more passes than a bucket of one process gives, but
    /// for a burst for each time that the ledger was away.
    #[test]
    fn never_more_passes_than_the_rate(
        count in 1u32..8,
        tokens in 1u32..300,
        seconds in 1u64..60,
        phases in proptest::collection::vec((any::<bool>(), 0.05..1.5f64, 0.0..400.0f64, 0usize..8), 1..8),
    ) {
        let rate = TokenRate::new(tokens, Duration::from_secs(seconds));
        let mut simulation = Simulation::new(count, rate);
        let mut outages = 0.0;
        for (is_away, length, asked, busy) in phases {
            if is_away && !simulation.mode.is_alone {
                // A part of less than one token is one token.
                outages += rate.burst.max(f64::from(count));
            }
            simulation.set_away(is_away);
            simulation.run(length, |index| if index == busy { asked } else { asked / 10.0 });
            let most = rate.burst + rate.per_second * simulation.now + outages + 1e-3;
            prop_assert!((simulation.passed as f64) <= most, "{} of {most}", simulation.passed);
        }
    }

    /// One node that is asked for more than the rate passes nine tenths of it at least.
    #[test]
    fn one_busy_node_has_nine_tenths(count in 1u32..20, tokens in 50u32..1000, factor in 1.2..6.0f64) {
        let mut simulation = Simulation::new(count, per_second(tokens));
        simulation.run(5.0, |index| if index == 0 { f64::from(tokens) * factor } else { 0.0 });
        prop_assert!(simulation.part() >= 0.9 - 0.02, "{}", simulation.part());
    }
}
