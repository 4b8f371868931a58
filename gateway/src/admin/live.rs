//! Live figures and events of the running gateway, for watchers.

use std::{convert::Infallible, time::Duration};

use axum::{
    Json,
    extract::State as Shared,
    response::sse::{Event, KeepAlive, Sse},
};
use futures::Stream;
use serde::Deserialize;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio_util::sync::CancellationToken;
use utoipa::IntoParams;

use super::{
    AdminProblem, Answer, Ask,
    problem::{QueryParams, read_number},
    staff::AdminPrincipal,
};
use crate::{
    control::{
        EventSubscription,
        gate::Role,
        operations::{
            sessions,
            stats::{self, StatsView},
        },
    },
    telemetry::events::LiveEvent,
};

/// The default window of figures, in seconds.
const WINDOW_USUAL: u64 = 60;
/// The time between two checks that the holder of a stream may still read.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct WantedFigures {
    /// Seconds back from now, 1 to 900; by default 60.
    #[serde(default, deserialize_with = "read_number")]
    #[param(minimum = 1, maximum = 900)]
    window: Option<u64>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct WantedEvents {
    /// Whether `call` events are sent; by default they are.
    calls: Option<bool>,
}

/// The counts of calls in the last seconds, from the counters that Prometheus also scrapes. Role: viewer.
#[utoipa::path(get, path = "/v1/stats", params(WantedFigures), responses(
    (status = 200, body = StatsView), (status = 400, body = AdminProblem), (status = 401, body = AdminProblem),
    (status = 403, body = AdminProblem), (status = 422, body = AdminProblem)))]
pub(super) async fn stats(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    QueryParams(wanted): QueryParams<WantedFigures>,
) -> Answer<Json<StatsView>> {
    staff.needs(Role::Viewer)?;
    let window = wanted.window.unwrap_or(WINDOW_USUAL);
    Ok(Json(stats::show(&admin.control, window)?))
}

/// Events as they happen, as server-sent events until the client disconnects: each second `stats` with the figures of about the
/// last one and those since the start; `call` for calls that ended, at most 50 a second; and `draft`, `contract`, `drift`,
/// `plugin`, `upstream`, `config` and `key` when those have changed, within about a second: fetch them again. `missed` is the
/// number of events that a slow reader lost. At most 16 streams are served at once; if none is free, the holder of the most loses
/// its oldest to a holder of fewer. Role: viewer.
#[utoipa::path(get, path = "/v1/events", params(WantedEvents), responses(
    (status = 200, content_type = "text/event-stream", body = String), (status = 400, body = AdminProblem),
    (status = 401, body = AdminProblem), (status = 403, body = AdminProblem), (status = 503, body = AdminProblem, description = "too many streams are open")))]
pub(super) async fn events(
    Shared(admin): Ask,
    staff: AdminPrincipal,
    QueryParams(wanted): QueryParams<WantedEvents>,
) -> Answer<Sse<impl Stream<Item = Result<Event, Infallible>>>> {
    staff.needs(Role::Viewer)?;
    let subscription = admin
        .control
        .subscribe(&staff.key.id, wanted.calls.unwrap_or(true))
        .ok_or_else(|| AdminProblem::unavailable("too many streams of events are open"))?;
    let holder = StreamHolder {
        session: staff.session.map(|session| session.id),
        admin: staff.key.id,
        ending: admin.ending.clone(),
    };
    let state = admin.state.clone();
    let events = futures::stream::unfold(
        (subscription, holder, state),
        async |(mut subscription, holder, state)| {
            let event = holder.next(&mut subscription, &state).await?;
            Some((Ok(event), (subscription, holder, state)))
        },
    );
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}

/// The reader of a stream, while its credential is valid.
struct StreamHolder {
    /// The id of the session, if the request came with one.
    session: Option<String>,
    /// The id of the admin key.
    admin: String,
    ending: CancellationToken,
}

impl StreamHolder {
    /// Returns the next event; `None` at the end of the process, and if the session or the key has ended or another admin took
    /// the place.
    async fn next(
        &self,
        subscription: &mut EventSubscription,
        state: &weir_state::GatewayState,
    ) -> Option<Event> {
        loop {
            let received = tokio::select! {
                received = subscription.events.recv() => received,
                received = receive_call(&mut subscription.calls) => received,
                () = self.ending.cancelled() => return None,
                () = subscription.displaced.cancelled() => return None,
                () = tokio::time::sleep(CHECK_INTERVAL) => {
                    self.may_read(state).await.then_some(())?;
                    continue;
                }
            };
            return match received {
                Ok(LiveEvent {
                    name: "stats",
                    data,
                }) => {
                    // It is sent each second: a stream ends with the right to read it.
                    self.may_read(state).await.then_some(())?;
                    Some(Event::default().event("stats").data(data))
                }
                Ok(event) => Some(Event::default().event(event.name).data(event.data)),
                Err(RecvError::Lagged(missed)) => {
                    let event = Event::default().event("missed");
                    Some(event.data(format!("{{\"count\":{missed}}}")))
                }
                Err(RecvError::Closed) => None,
            };
        }
    }

    async fn may_read(&self, state: &weir_state::GatewayState) -> bool {
        let holds = sessions::is_live(state, &self.admin, self.session.as_deref()).await;
        // If the state cannot be read, nothing is known to have ended.
        holds.unwrap_or(true)
    }
}

/// Returns the next call; never returns if calls are not wanted.
async fn receive_call(
    calls: &mut Option<broadcast::Receiver<LiveEvent>>,
) -> Result<LiveEvent, RecvError> {
    match calls {
        Some(calls) => calls.recv().await,
        None => std::future::pending().await,
    }
}
