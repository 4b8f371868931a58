//! Answers Prometheus' scrapes: with the series that are counted as things happen, and with numbers that are kept elsewhere and
//! read now, so that nothing is kept twice.

use std::sync::Arc;

use prometheus::{
    CounterVec, GaugeVec, Opts, TextEncoder, core::Collector as _, proto::MetricFamily,
};
use weir_upstream::{UpstreamFindings, UpstreamOutcome, UpstreamServer};

use crate::{
    control::{gate::ChangeClass, refused},
    serving::ServingGateway,
    telemetry::metrics::table::{self, MetricDescriptor, MetricKind},
};

/// A value and its labels, in the order of the row.
type Sample<'a> = (Vec<&'a str>, f64);

/// Returns everything in Prometheus' text format.
pub fn text(gateway: &ServingGateway) -> String {
    let mut families = gateway.metrics().gather();
    families.extend(read_now(gateway));
    TextEncoder::new()
        .encode_to_string(&families)
        .expect("families of the registry are whole")
}

fn read_now(gateway: &ServingGateway) -> Vec<MetricFamily> {
    let mut families = Vec::new();
    load(gateway, &mut families);
    ledger(gateway, &mut families);
    refusals(gateway, &mut families);
    plugins(gateway, &mut families);
    upstreams(gateway, &mut families);
    audit(gateway, &mut families);
    contracts(gateway, &mut families);
    families.push(one(
        &table::LOG_LINES_LOST,
        crate::telemetry::lines_lost() as f64,
    ));
    let traced = gateway.traces().map(|traces| traces.counts());
    let traced = traced.into_iter().flatten();
    families.push(family(
        &table::TRACED_CALLS,
        traced
            .map(|(result, count)| (vec![result], count as f64))
            .collect(),
    ));
    families.push(family(
        &table::BUILD,
        vec![(vec![env!("CARGO_PKG_VERSION")], 1.0)],
    ));
    families.retain(|family| !family.get_metric().is_empty());
    families
}

fn load(gateway: &ServingGateway, families: &mut Vec<MetricFamily>) {
    let running = gateway.in_flight();
    families.push(one(&table::IN_FLIGHT, running.len() as f64));
    families.push(one(&table::IN_FLIGHT_MAX, f64::from(running.most())));
    families.push(one(&table::TASKS, gateway.tasks().len() as f64));
    let metrics = gateway.metrics();
    families.push(one(&table::SESSIONS, metrics.sessions() as f64));
    families.push(one(&table::STREAMS, metrics.streams() as f64));
    let decided = [
        ("agent", gateway.buckets().agent_decisions()),
        ("tool", gateway.buckets().tool_decisions()),
        ("quota", gateway.quotas().decisions()),
        ("in_flight", running.decisions()),
    ];
    let decided = decided
        .into_iter()
        .flat_map(|(limiter, (passed, refused))| {
            [
                (vec![limiter, "passed"], passed as f64),
                (vec![limiter, "refused"], refused as f64),
            ]
        });
    families.push(family(&table::LIMITERS, decided.collect()));
}

/// The ledger that nodes share. If this process counts on its own, everything is zero.
fn ledger(gateway: &ServingGateway, families: &mut Vec<MetricFamily>) {
    let ledger = gateway.buckets().ledger();
    let figures = ledger.map(|ledger| ledger.figures()).unwrap_or_default();
    families.push(family(
        &table::LEDGER_TRIPS,
        vec![
            (vec!["answered"], figures.answered as f64),
            (vec!["failed"], figures.failed as f64),
        ],
    ));
    families.push(one(&table::LEDGER_SECONDS, figures.seconds));
    families.push(family(
        &table::LEDGER_CALLS,
        vec![
            (vec!["granted"], figures.granted as f64),
            (vec!["refused"], figures.refused as f64),
        ],
    ));
    let is_away = f64::from(u8::from(figures.is_away));
    families.push(one(&table::LEDGER_AWAY, is_away));
    families.push(one(&table::LEDGER_OUTAGES, figures.outages as f64));
    families.push(one(&table::LEDGER_NODES, f64::from(figures.nodes)));
}

fn refusals(gateway: &ServingGateway, families: &mut Vec<MetricFamily>) {
    let refused = gateway
        .audit()
        .refusals()
        .map(|(what, reason, count)| (vec![what, reason], count as f64));
    families.push(family(&table::REFUSALS, refused.collect()));
    let errors = crate::wire::errors_answered().map(|(code, count)| (vec![code], count as f64));
    families.push(family(&table::RPC_ERRORS, errors.collect()));
}

fn plugins(gateway: &ServingGateway, families: &mut Vec<MetricFamily>) {
    let plugins = gateway.host().plugins();
    let each = |row: &MetricDescriptor, value: &dyn Fn(&weir_plugin_host::PluginStatus) -> f64| {
        family(
            row,
            plugins
                .iter()
                .map(|plugin| (vec![&*plugin.name], value(plugin)))
                .collect(),
        )
    };
    families.push(each(&table::PLUGIN_CALLS, &|plugin| plugin.calls as f64));
    families.push(each(&table::PLUGIN_SECONDS, &|plugin| {
        plugin.busy.as_secs_f64()
    }));
    families.push(each(&table::PLUGIN_MEMORY, &|plugin| {
        plugin.memory_peak_bytes as f64
    }));
    families.push(each(&table::PLUGIN_PARKED, &|plugin| {
        plugin.parked_bytes as f64
    }));
    families.push(each(&table::PLUGIN_BACKING_OFF, &|plugin| {
        plugin.backing_off as f64
    }));
    families.push(each(&table::PLUGIN_SWAPS, &|plugin| plugin.swaps as f64));
    let failures = plugins.iter().flat_map(|plugin| {
        let failures = &plugin.ends;
        [
            ("failed", failures.failed),
            ("memory", failures.memory),
            ("timeout", failures.timeout),
            ("overloaded", failures.overloaded),
            ("backed_off", failures.backed_off),
        ]
        .map(|(kind, count)| (vec![&*plugin.name, kind], count as f64))
    });
    families.push(family(&table::PLUGIN_FAILURES, failures.collect()));
    let info = plugins.iter().map(|plugin| {
        let digest = plugin.digest.get(..12).unwrap_or(&plugin.digest);
        (vec![&*plugin.name, &*plugin.version, digest], 1.0)
    });
    families.push(family(&table::PLUGIN_INFO, info.collect()));
    let (live, parked) = gateway.host().instances();
    let running = (vec!["running"], live.saturating_sub(parked) as f64);
    families.push(family(
        &table::INSTANCES,
        vec![running, (vec!["parked"], parked as f64)],
    ));
}

fn upstreams(gateway: &ServingGateway, families: &mut Vec<MetricFamily>) {
    let all = gateway.upstreams().all();
    let each = |row: &MetricDescriptor, value: &dyn Fn(&UpstreamServer) -> f64| {
        family(
            row,
            all.iter()
                .map(|upstream| (vec![&*upstream.name], value(upstream)))
                .collect(),
        )
    };
    families.push(each(&table::UPSTREAM_SESSIONS, &|upstream| {
        upstream.sessions() as f64
    }));
    families.push(each(&table::UPSTREAM_RESTARTS, &|upstream| {
        upstream.restarts() as f64
    }));
    families.push(each(&table::UPSTREAM_BACKING_OFF, &|upstream| {
        upstream.backing_off() as f64
    }));
    families.push(each(&table::UPSTREAM_LEFT_OUT, &|upstream| {
        upstream.seen().left_out.len() as f64
    }));
    let calls = all.iter().flat_map(|upstream| {
        UpstreamOutcome::ALL.map(|called| {
            (
                vec![&*upstream.name, called.word()],
                upstream.calls(called) as f64,
            )
        })
    });
    families.push(family(&table::UPSTREAM_CALLS, calls.collect()));
    let state = |upstream: &Arc<UpstreamServer>| upstream.seen().state();
    let states = all.iter().flat_map(|upstream| {
        let now = state(upstream);
        UpstreamFindings::STATES.map(|word| {
            (
                vec![&*upstream.name, word],
                f64::from(u8::from(word == now)),
            )
        })
    });
    families.push(family(&table::UPSTREAM_STATE, states.collect()));
    let down = all
        .iter()
        .filter_map(|upstream| Some((vec![&*upstream.name, upstream.seen().reason?], 1.0)));
    families.push(family(&table::UPSTREAM_DOWN, down.collect()));
}

fn audit(gateway: &ServingGateway, families: &mut Vec<MetricFamily>) {
    let Some(health) = gateway.audit().health() else {
        return;
    };
    families.push(one(
        &table::AUDIT_FAILING,
        f64::from(u8::from(health.failing)),
    ));
    families.push(one(&table::AUDIT_FAILURES, health.failures as f64));
    families.push(one(&table::AUDIT_RECORDS, health.records as f64));
    families.push(one(&table::AUDIT_BYTES, health.bytes as f64));
    families.push(one(&table::AUDIT_UNSYNCED, health.unsynced as f64));
    families.push(one(&table::AUDIT_UNCERTAIN, health.uncertain as f64));
    let Some(copies) = gateway.audit().copy_figures() else {
        return;
    };
    for (row, value) in [
        (
            &table::AUDIT_UNSHIPPED_SEGMENTS,
            copies.unshipped_segments as f64,
        ),
        (&table::AUDIT_UNSHIPPED_BYTES, copies.unshipped_bytes as f64),
        (&table::AUDIT_UNSHIPPED_AGE, copies.age.as_secs_f64()),
        (&table::AUDIT_COPY_FAILURES, copies.failures as f64),
    ] {
        families.push(one(row, value));
    }
}

fn contracts(gateway: &ServingGateway, families: &mut Vec<MetricFamily>) {
    let snapshot = gateway.snapshot();
    let metrics = gateway.metrics();
    let shown = snapshot.contracts.iter().take(metrics.contracts_max());
    let folded = snapshot
        .contracts
        .len()
        .saturating_sub(metrics.contracts_max());
    metrics.folded_contracts(folded);
    let shown: Vec<_> = shown
        .map(|contract| (contract, contract.version.to_string()))
        .collect();
    let tools = shown.iter().map(|(contract, version)| {
        (
            vec![contract.name.as_str(), version.as_str()],
            contract.tools.len() as f64,
        )
    });
    families.push(family(&table::CONTRACT_TOOLS, tools.collect()));
    let sunsets: Vec<_> = snapshot
        .catalogue
        .kept()
        .filter_map(|kept| {
            let version = kept.contract.version.to_string();
            Some((kept, version, kept.sunset_ms? as f64 / 1000.0))
        })
        .collect();
    let sunsets = sunsets.iter().map(|(kept, version, at_s)| {
        let labels = vec![kept.contract.name.as_str(), version.as_str()];
        (labels, *at_s)
    });
    families.push(family(&table::SUNSETS, sunsets.collect()));
    let waiting = metrics.drafts();
    let count = |class: &str| {
        waiting
            .iter()
            .find(|(known, _)| *known == class)
            .map_or(0, |(_, count)| *count)
    };
    let drafts = ChangeClass::ALL
        .iter()
        .map(|class| (vec![class.as_str()], f64::from(count(class.as_str()))));
    families.push(family(&table::DRAFTS, drafts.collect()));
    let refused = metrics.refused();
    let count = |kind: &str| {
        refused
            .iter()
            .find(|(known, _)| *known == kind)
            .map_or(0, |(_, count)| *count)
    };
    let refused =
        refused::ArtifactKind::ALL.map(|kind| (vec![kind.word()], count(kind.word()) as f64));
    families.push(family(&table::REFUSED, refused.to_vec()));
    families.push(one(&table::DRIFTED, metrics.drifted() as f64));
    families.push(one(&table::TOOLS, snapshot.catalogue.len() as f64));
    families.push(one(&table::CONTRACTS, snapshot.contracts.len() as f64));
    families.push(one(&table::GENERATION, snapshot.generation as f64));
}

fn one(row: &MetricDescriptor, value: f64) -> MetricFamily {
    family(row, vec![(Vec::new(), value)])
}

fn family(row: &MetricDescriptor, samples: Vec<Sample<'_>>) -> MetricFamily {
    let options = Opts::new(row.name, row.help);
    let valid = "a row of the table is valid";
    let mut families = match row.kind {
        MetricKind::Counter => {
            let counter = CounterVec::new(options, row.labels).expect(valid);
            samples
                .iter()
                .for_each(|(labels, value)| counter.with_label_values(labels).inc_by(*value));
            counter.collect()
        }
        MetricKind::Gauge | MetricKind::Histogram(_) => {
            let gauge = GaugeVec::new(options, row.labels).expect(valid);
            samples
                .iter()
                .for_each(|(labels, value)| gauge.with_label_values(labels).set(*value));
            gauge.collect()
        }
    };
    families.pop().unwrap_or_default()
}
