//! Sessions are bounded, bound to their caller, and end.

use super::*;
use crate::{cursor::CursorCipher, methods::StreamLimiter};

const ANY: CatalogueEndpoint = CatalogueEndpoint::All;

fn open(sessions: &SessionTable) -> Arc<ClientSession> {
    open_at(sessions, ANY)
}

fn open_at(sessions: &SessionTable, endpoint: CatalogueEndpoint) -> Arc<ClientSession> {
    open_for(sessions, CallerIdentity::local(), endpoint)
}

fn open_for(
    sessions: &SessionTable,
    caller: CallerIdentity,
    endpoint: CatalogueEndpoint,
) -> Arc<ClientSession> {
    let id = SessionId::random().unwrap();
    let client = Arc::new(SessionClient::new(id.number(), &Arc::default()));
    sessions.open(id, client, caller, endpoint, ProtocolVersion::V2025_11_25)
}

fn agent(name: &str) -> CallerIdentity {
    CallerIdentity {
        agent: name.into(),
        ..CallerIdentity::local()
    }
}

fn lives(sessions: &SessionTable, session: &ClientSession) -> bool {
    sessions
        .get(
            session.id,
            &CallerIdentity::local(),
            &CatalogueEndpoint::All,
        )
        .is_some()
}

#[test]
fn an_id_says_what_was_agreed_on_to_its_caller_at_its_endpoint() {
    let cursors = CursorCipher::ephemeral().unwrap();
    let id = SessionId::random().unwrap();
    let terms = SessionTerms {
        version: ProtocolVersion::V2025_06_18,
        abilities: 5,
    };
    let name = sealed::write(&cursors, id, &agent("dana"), &ANY, terms);
    let open = |name: &str,
                cursors: &CursorCipher,
                caller: &CallerIdentity,
                endpoint: &CatalogueEndpoint| {
        let terms = NamedSession::parse(name)?.terms(cursors, caller, endpoint)?;
        Some((terms.version, terms.abilities))
    };
    let read = open(&name, &cursors, &agent("dana"), &ANY);
    assert_eq!(read, Some((ProtocolVersion::V2025_06_18, 5)));
    assert!(NamedSession::parse(&name).unwrap().id == id);
    assert_eq!(open(&name, &cursors, &agent("eve"), &ANY), None);
    let desk = CatalogueEndpoint::Contract("desk".into());
    assert_eq!(open(&name, &cursors, &agent("dana"), &desk), None);
    let strange = CursorCipher::ephemeral().unwrap();
    assert_eq!(open(&name, &strange, &agent("dana"), &ANY), None);
    for at in 0..name.len() {
        let mut altered = name.clone().into_bytes();
        altered[at] = if altered[at] == b'A' { b'B' } else { b'A' };
        let altered = String::from_utf8(altered).unwrap();
        assert_eq!(open(&altered, &cursors, &agent("dana"), &ANY), None);
    }
    for bad in [
        "",
        "1",
        &name[1..],
        &format!("{name}A"),
        &"+".repeat(name.len()),
    ] {
        assert!(NamedSession::parse(bad).is_none(), "{bad}");
    }
}

#[test]
fn a_session_is_its_callers_on_its_endpoint() {
    let sessions = SessionTable::new(10, Duration::from_secs(60));
    let session = open_at(&sessions, CatalogueEndpoint::Contract("desk".into()));
    let other = CallerIdentity {
        agent: "other".into(),
        ..CallerIdentity::local()
    };
    assert!(
        sessions
            .get(
                session.id,
                &other,
                &CatalogueEndpoint::Contract("desk".into())
            )
            .is_none()
    );
    assert!(
        sessions
            .get(
                session.id,
                &CallerIdentity::local(),
                &CatalogueEndpoint::All
            )
            .is_none()
    );
    assert!(
        sessions
            .get(
                session.id,
                &CallerIdentity::local(),
                &CatalogueEndpoint::Contract("desk".into())
            )
            .is_some()
    );
    sessions.end(&session);
    assert!(
        sessions
            .get(
                session.id,
                &CallerIdentity::local(),
                &CatalogueEndpoint::Contract("desk".into())
            )
            .is_none()
    );
    assert!(session.ended().is_cancelled());
}

#[test]
fn idle_sessions_leave_the_table() {
    let sessions = SessionTable::new(10, Duration::ZERO);
    let session = open(&sessions);
    std::thread::sleep(Duration::from_millis(5));
    let next = open(&sessions);
    assert!(!lives(&sessions, &session) && session.ended().is_cancelled());
    assert!(lives(&sessions, &next) && sessions.len() == 1);
}

#[test]
fn the_table_is_bounded_and_keeps_what_is_used() {
    let sessions = SessionTable::new(100, Duration::from_secs(60));
    let kept: Vec<_> = (0..5).map(|_| open(&sessions)).collect();
    let first = open(&sessions);
    for _ in 0..1_000 {
        open(&sessions);
        std::thread::sleep(Duration::from_micros(200));
        assert!(kept.iter().all(|session| lives(&sessions, session)));
        assert!(sessions.len() <= 100);
    }
    assert!(!lives(&sessions, &first) && first.ended().is_cancelled());
    assert!(sessions.order.lock().queued() <= 216);
}

#[test]
fn a_new_stream_takes_the_place_of_the_old_one() {
    let sessions = SessionTable::new(10, Duration::from_secs(60));
    let session = open(&sessions);
    let streams = StreamLimiter::new(1, CancellationToken::new());
    let take = || session.take_stream(|| streams.admit(&CallerIdentity::local()));
    let first = take().expect("there is room for one");
    let second = take().expect("it takes the room of the first");
    assert!(first.ending.is_cancelled() && !second.ending.is_cancelled());
    drop((first.room, second.room));
    assert_eq!(streams.len(), 0);
    sessions.end(&session);
    assert!(second.ending.is_cancelled());
}

/// Two nodes receive the announcements of two streams in the same order: the last announced one is kept.
#[test]
fn a_stream_ends_with_a_newer_one_of_another_node_alone() {
    let sessions = SessionTable::new(10, Duration::from_secs(60));
    let session = open(&sessions);
    let streams = StreamLimiter::new(2, CancellationToken::new());
    let take = || session.take_stream(|| streams.admit(&CallerIdentity::local()));
    let first = take().expect("there is room");
    session.hear_of_stream(70, false);
    assert!(!first.ending.is_cancelled(), "that one was opened before");
    session.hear_of_stream(first.number + 1, true);
    session.hear_of_stream(71, false);
    assert!(!first.ending.is_cancelled(), "it is not announced yet");
    session.hear_of_stream(first.number, true);
    session.hear_of_stream(72, false);
    assert!(first.ending.is_cancelled());
    let second = take().expect("there is room");
    assert!(!second.ending.is_cancelled());
}

#[test]
fn a_session_that_has_ended_takes_no_room() {
    let sessions = SessionTable::new(4, Duration::from_secs(60));
    let kept: Vec<_> = (0..3).map(|_| open(&sessions)).collect();
    for _ in 0..100 {
        let session = open(&sessions);
        sessions.end(&session);
    }
    assert!(kept.iter().all(|session| lives(&sessions, session)));
    assert!(sessions.order.lock().queued() <= 24);
}

/// When all sessions are taken, an agent with more than its even share displaces its own session, never that of another agent.
#[test]
fn an_agent_displaces_its_own_sessions() {
    let sessions = SessionTable::new(40, Duration::from_secs(60));
    let quiet: Vec<_> = (0..5)
        .map(|_| open_for(&sessions, agent("quiet"), ANY))
        .collect();
    let mut busy: Vec<_> = (0..1_000)
        .map(|_| open_for(&sessions, agent("busy"), ANY))
        .collect();
    let are_open = |all: &[Arc<ClientSession>]| {
        let open = all.iter().filter(|session| !session.ended().is_cancelled());
        open.count()
    };
    assert_eq!((are_open(&quiet), are_open(&busy)), (5, 35));
    let late = open_for(&sessions, agent("late"), ANY);
    assert!(
        !late.ended().is_cancelled(),
        "there is room for a third agent"
    );
    assert_eq!((are_open(&quiet), are_open(&busy)), (5, 34));
    assert!(sessions.len() == 40 && sessions.order.lock().queued() <= 96);
    busy.retain(|session| !session.ended().is_cancelled());
    busy.iter().for_each(|session| sessions.end(session));
    assert_eq!(sessions.len(), 6);
}
