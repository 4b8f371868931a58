//! A session with a child process: calls, progress, cancellation, and what reaches the child.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::{Value, json, value::RawValue};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use weir_connections::http::TraceContext;
use weir_upstream::{
    Answering, ClientCapability, EraPreference, RequestError, UpstreamCall, UpstreamCommand,
    UpstreamFailure, UpstreamFailureKind, UpstreamListener, UpstreamOperation, UpstreamProgress,
    UpstreamQuestion, UpstreamSession, UpstreamSettings, UpstreamTarget,
};

use crate::urls::count_tools;

/// The time that a call has.
const OWN_TIME: Duration = Duration::from_secs(120);
/// The time that a busy machine may take for what comes at once.
const SOON: Duration = Duration::from_secs(60);

fn command(words: &[&str]) -> UpstreamCommand {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/upstreams/hostile.py");
    let words = words.iter().map(Into::into);
    UpstreamCommand {
        program: "python3".into(),
        arguments: [script.into_os_string()].into_iter().chain(words).collect(),
        ..UpstreamCommand::default()
    }
}

async fn open(
    words: &[&str],
    settings: UpstreamSettings,
) -> Result<UpstreamSession, UpstreamFailure> {
    UpstreamSession::open(&UpstreamTarget::Command(command(words)), settings).await
}

fn asked(name: &str, arguments: Option<&RawValue>) -> UpstreamOperation {
    UpstreamOperation::Tool {
        name: name.into(),
        arguments: arguments.map(ToOwned::to_owned),
        as_task: false,
    }
}

fn call<'c>(asked: &'c UpstreamOperation, cancel: &'c CancellationToken) -> UpstreamCall<'c> {
    UpstreamCall {
        asked,
        listener: None,
        headers: &[],
        cancel,
        timeout: OWN_TIME,
        trace: None,
        resumed: None,
    }
}

fn text(result: &RawValue) -> Value {
    let result: Value = serde_json::from_str(result.get()).expect("a result");
    serde_json::from_str(result["content"][0]["text"].as_str().expect("a text"))
        .expect("JSON in it")
}

#[tokio::test]
async fn a_call_reaches_the_server_as_it_was_written() {
    for (behaviour, is_modern) in [("good", true), ("legacy", false)] {
        let session = open(&[behaviour], UpstreamSettings::default())
            .await
            .expect("a session");
        assert_eq!(session.is_modern(), is_modern);
        let cancel = CancellationToken::new();
        let arguments: &RawValue =
            serde_json::from_str(r#"{"b":1.0,"a":12345678901234567}"#).expect("JSON");
        let asked = asked("echo", Some(arguments));
        let trace = TraceContext {
            parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".into(),
            state: Some("vendor=a".into()),
        };
        let mut request = call(&asked, &cancel);
        request.trace = Some(&trace);
        let params = text(&session.call(request).await.expect("an answer"));
        assert_eq!(params["name"], "echo");
        assert_eq!(
            params["arguments"],
            json!({ "b": 1.0, "a": 12_345_678_901_234_567_i64 })
        );
        assert_eq!(
            params["_meta"]["traceparent"],
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        );
        assert_eq!(params["_meta"]["tracestate"], "vendor=a");
        assert_eq!(
            params["_meta"]["io.modelcontextprotocol/protocolVersion"].is_string(),
            is_modern,
            "{params}"
        );
        session.close().await;
    }
}

#[tokio::test]
async fn progress_comes_while_the_call_runs() {
    let session = open(&["good"], UpstreamSettings::default())
        .await
        .expect("a session");
    let heard = Arc::new(Mutex::new(Vec::new()));
    let (kept, cancel) = (heard.clone(), CancellationToken::new());
    let asked = asked("progress", None);
    let mut request = call(&asked, &cancel);
    request.listener = Some(Arc::new(Heard(kept)));
    session.call(request).await.expect("an answer");
    let step = |n: u8| UpstreamProgress {
        progress: n.into(),
        total: Some(3.0),
        message: Some(format!("step {n}")),
    };
    assert_eq!(*heard.lock(), [step(1), step(2), step(3)]);
    session.close().await;
}

/// The error names what is missing: the program or the folder that it starts in.
#[tokio::test]
async fn a_folder_that_is_not_there_is_told_from_a_program_that_is_not() {
    let start = async |command| {
        let failure = UpstreamSession::open(
            &UpstreamTarget::Command(command),
            UpstreamSettings::default(),
        )
        .await
        .err()
        .expect("it cannot start");
        assert!(
            matches!(failure.kind, UpstreamFailureKind::Start),
            "{failure}"
        );
        failure.to_string()
    };
    let printed = start(UpstreamCommand {
        folder: Some("/no/such/folder".into()),
        ..command(&["good"])
    })
    .await;
    assert!(
        printed.contains("its working folder /no/such/folder does not exist"),
        "{printed}"
    );
    let printed = start(UpstreamCommand {
        program: "no-such-program".into(),
        ..command(&["good"])
    })
    .await;
    assert!(printed.contains("there is no such program"), "{printed}");
}

/// The server gets the cancellation, and the answer says what it did all the same.
#[tokio::test]
async fn a_cancelled_call_ends_and_its_true_outcome_counts() {
    for (words, is_done) in [(&["good"][..], false), (&["good", "done"], true)] {
        while !check_cancelled(words, is_done).await {}
    }
}

/// Cancels a call that the server has. Returns `false` where the machine stopped for as long as its answer is waited for.
async fn check_cancelled(words: &[&str], is_done: bool) -> bool {
    let session = open(words, UpstreamSettings::default())
        .await
        .expect("a session");
    let (wait, cancel) = (asked("wait", None), CancellationToken::new());
    let listener = Arc::new(Agreeable::default());
    let mut waiting = call(&wait, &cancel);
    waiting.listener = Some(listener.clone());
    let mut waiting = std::pin::pin!(session.call(waiting));
    tokio::select! {
        ended = &mut waiting => panic!("{ended:?}"),
        () = listener.begun.notified() => {}
    }
    let started = Instant::now();
    cancel.cancel();
    match waiting.await {
        Ok(result) => assert!(
            is_done && result.get().contains("it was done before"),
            "{result}"
        ),
        Err(RequestError::Failed(failure)) => {
            assert_eq!(failure.kind, UpstreamFailureKind::Cancelled, "{failure}");
            if is_done && started.elapsed() > Duration::from_millis(1_500) {
                return false;
            }
            assert!(!is_done, "{failure}");
        }
        Err(RequestError::Refused(refusal)) => panic!("{refusal:?}"),
    }
    // Its own time would end it later.
    let took = started.elapsed();
    assert!(took < SOON, "{took:?}");
    // The session goes on.
    session
        .call(call(&asked("echo", None), &CancellationToken::new()))
        .await
        .expect("an answer");
    session.close().await;
    true
}

#[tokio::test]
async fn a_refusal_and_a_death_are_told_apart() {
    let session = open(&["good"], UpstreamSettings::default())
        .await
        .expect("a session");
    let cancel = CancellationToken::new();
    match session.call(call(&asked("refuse", None), &cancel)).await {
        Err(RequestError::Refused(refusal)) => {
            assert_eq!(
                (refusal.code, refusal.message.as_str()),
                (-32602, "no such argument")
            )
        }
        other => panic!("{other:?}"),
    }
    match session.call(call(&asked("die", None), &cancel)).await {
        Err(RequestError::Failed(failure)) => {
            assert_eq!(failure.kind, UpstreamFailureKind::Closed);
            assert!(
                failure.is_handed_over && failure.cause.contains("exit code 3"),
                "{failure}"
            );
        }
        other => panic!("{other:?}"),
    }
    match session.call(call(&asked("echo", None), &cancel)).await {
        Err(RequestError::Failed(failure)) => assert!(
            !failure.is_handed_over,
            "nothing can have arrived: {failure}"
        ),
        other => panic!("{other:?}"),
    }
    assert!(session.is_closed());
    session.close().await;
}

#[tokio::test]
async fn many_calls_run_at_once_and_each_gets_its_answer() {
    let session = open(&["good"], UpstreamSettings::default())
        .await
        .expect("a session");
    let session = Arc::new(session);
    let calls = (0..200).map(|n| {
        let session = session.clone();
        tokio::spawn(async move {
            let arguments = serde_json::value::to_raw_value(&json!({ "n": n })).expect("JSON");
            let result = session
                .call(call(
                    &asked("echo", Some(&arguments)),
                    &CancellationToken::new(),
                ))
                .await
                .expect("an answer");
            assert_eq!(text(&result)["arguments"]["n"], n);
        })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.expect("a call");
    }
}

/// The child sees four of our variables, and those that the operator gives.
#[tokio::test]
async fn a_child_sees_its_own_environment_alone() {
    let mut command = command(&["good"]);
    command.environment.insert("GIVEN".into(), "yes".into());
    let session = UpstreamSession::open(
        &UpstreamTarget::Command(command),
        UpstreamSettings::default(),
    )
    .await
    .expect("a session");
    let environment = text(
        &session
            .call(call(&asked("environment", None), &CancellationToken::new()))
            .await
            .expect("an answer"),
    );
    assert_eq!(environment["GIVEN"], "yes");
    let allowed = [
        "PATH",
        "HOME",
        "LANG",
        "TMPDIR",
        "GIVEN",
        "LC_CTYPE",
        "__CF_USER_TEXT_ENCODING",
    ];
    for name in environment.as_object().expect("an object").keys() {
        // If `python3` is a shim that chooses one, it says which, and the shell it is written for adds its own.
        let of_a_shim =
            name.contains("PYENV_") || ["PWD", "OLDPWD", "SHLVL", "_"].contains(&name.as_str());
        assert!(
            allowed.contains(&name.as_str()) || of_a_shim,
            "the child sees {name}"
        );
    }
    session.close().await;
}

#[tokio::test]
async fn an_era_is_taken_where_it_is_asked_for() {
    let legacy = UpstreamSettings {
        era: EraPreference::Legacy,
        ask: vec![ClientCapability::Roots],
        ..UpstreamSettings::default()
    };
    let session = open(&["good"], legacy).await.expect("a session");
    assert_eq!(session.version(), "2025-06-18");
    assert_eq!(count_tools(&session).await, Some(1));
    session.close().await;
    let modern = UpstreamSettings {
        era: EraPreference::Modern,
        ..UpstreamSettings::default()
    };
    let failure = open(&["legacy"], modern)
        .await
        .err()
        .expect("no modern server");
    assert_eq!(failure.kind, UpstreamFailureKind::Protocol);
}

/// The child is gone when `close` returns, and soon after the session is only dropped.
#[tokio::test]
async fn no_child_outlives_its_session() {
    for is_closed in [true, false] {
        let session = open(&["good"], UpstreamSettings::default())
            .await
            .expect("a session");
        let counted = session
            .call(call(&asked("count", None), &CancellationToken::new()))
            .await
            .expect("an answer");
        let counted: Value = serde_json::from_str(counted.get()).expect("JSON");
        let printed = counted["content"][0]["text"].as_str().expect("a text");
        let child = Path::new("/proc").join(printed.split(' ').next().expect("its process id"));
        assert!(child.exists());
        if is_closed {
            session.close().await
        } else {
            drop(session)
        }
        let started = Instant::now();
        while child.exists() {
            assert!(started.elapsed() < SOON, "the child is left");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// A log message of a child names no call: it is for all who called in the session, unless they may not hear of each other,
/// which is so although one of them listens to nothing.
#[tokio::test]
async fn a_log_message_that_names_no_call_is_heard_by_every_call_of_its_session() {
    for (is_shared, first_listens, heard) in [
        (false, true, 2),
        (true, true, 0),
        (false, false, 1),
        (true, false, 0),
    ] {
        let session = open(
            &["good"],
            UpstreamSettings {
                is_shared,
                ..UpstreamSettings::default()
            },
        )
        .await
        .expect("a session");
        let (stalls, logs) = (asked("stall", None), asked("log", None));
        let messages = Arc::new(Mutex::new(Vec::new()));
        let listener = || Some(Arc::new(HeardLog(messages.clone())) as Arc<dyn UpstreamListener>);
        let (first, second) = (CancellationToken::new(), CancellationToken::new());
        let mut waiting = call(&stalls, &first);
        let mut logging = call(&logs, &second);
        (waiting.listener, logging.listener) = (listener().filter(|_| first_listens), listener());
        let waiting = session.call(waiting);
        tokio::pin!(waiting);
        // It is sent, and nothing answers it.
        assert!(
            tokio::time::timeout(Duration::from_millis(300), &mut waiting)
                .await
                .is_err()
        );
        session.call(logging).await.expect("an answer");
        assert_eq!(
            *messages.lock(),
            vec!["\"a word\"".to_owned(); heard],
            "shared: {is_shared}"
        );
        session.close().await;
    }
}

/// Opens a session that several callers share, with a legacy child that may ask them something.
async fn asking() -> UpstreamSession {
    let settings = UpstreamSettings {
        era: EraPreference::Legacy,
        ask: vec![ClientCapability::Elicitation],
        is_shared: true,
        ..UpstreamSettings::default()
    };
    open(&["good"], settings).await.expect("a session")
}

/// A question over a pipe names no call. Another caller would answer for one that cannot be asked.
#[tokio::test]
async fn a_question_is_never_put_to_the_caller_of_another_call() {
    let session = asking().await;
    let (held, inquire) = (asked("held", None), asked("inquire", None));
    let (of_held, of_inquire) = (CancellationToken::new(), CancellationToken::new());
    let other = Arc::new(Agreeable::default());
    let mut holding = call(&held, &of_held);
    holding.listener = Some(other.clone());
    let mut holding = std::pin::pin!(session.call(holding));
    tokio::select! {
        ended = &mut holding => panic!("{ended:?}"),
        () = other.begun.notified() => {}
    }
    let mut inquiring = std::pin::pin!(session.call(call(&inquire, &of_inquire)));
    let early = tokio::time::timeout(Duration::from_millis(300), &mut inquiring).await;
    assert!(early.is_err(), "it waits until it is alone: {early:?}");
    of_held.cancel();
    holding.await.expect("an answer");
    assert_eq!(
        text(&inquiring.await.expect("an answer")),
        json!({ "action": "decline" })
    );
    assert_eq!(other.asked.load(Ordering::SeqCst), 0);
    session.close().await;
}

/// A server that waits for the answer to its question would wait for ever, and the next calls for it.
#[tokio::test]
async fn an_open_question_of_a_call_that_is_cancelled_is_declined() {
    let session = asking().await;
    let arguments = RawValue::from_string(r#"{"ignores_cancel":true}"#.to_owned()).expect("JSON");
    let (inquire, cancel) = (asked("inquire", Some(&arguments)), CancellationToken::new());
    let listener = Arc::new(Agreeable {
        is_undecided: true,
        ..Agreeable::default()
    });
    let mut inquiring = call(&inquire, &cancel);
    inquiring.listener = Some(listener.clone());
    let mut inquiring = std::pin::pin!(session.call(inquiring));
    while listener.asked.load(Ordering::SeqCst) == 0 {
        let early = tokio::time::timeout(Duration::from_millis(20), &mut inquiring).await;
        assert!(early.is_err(), "{early:?}");
    }
    cancel.cancel();
    assert_eq!(
        text(&inquiring.await.expect("an answer")),
        json!({ "action": "decline" })
    );
    session.close().await;
}

/// Nothing says when a call ends that was given up, and whose log messages these are.
#[tokio::test]
async fn a_log_message_that_may_be_of_a_call_given_up_is_heard_by_no_other_caller() {
    for (is_shared, heard) in [(false, 1), (true, 0)] {
        let settings = UpstreamSettings {
            is_shared,
            ..UpstreamSettings::default()
        };
        let session = open(&["good"], settings).await.expect("a session");
        let (stalls, logs) = (asked("stall", None), asked("log", None));
        let (first, second) = (CancellationToken::new(), CancellationToken::new());
        let mut stalling = std::pin::pin!(session.call(call(&stalls, &first)));
        let early = tokio::time::timeout(Duration::from_millis(300), &mut stalling).await;
        assert!(early.is_err(), "{early:?}");
        first.cancel();
        assert!(stalling.await.is_err());
        let messages = Arc::new(Mutex::new(Vec::new()));
        let mut logging = call(&logs, &second);
        logging.listener = Some(Arc::new(HeardLog(messages.clone())));
        session.call(logging).await.expect("an answer");
        assert_eq!(messages.lock().len(), heard, "shared: {is_shared}");
        session.close().await;
    }
}

#[tokio::test]
async fn a_call_that_is_cancelled_while_it_waits_for_another_is_never_sent() {
    let session = asking().await;
    let (held, count) = (asked("held", None), asked("count", None));
    let (of_held, of_count) = (CancellationToken::new(), CancellationToken::new());
    let listener = Arc::new(Agreeable::default());
    let (mut holding, mut counting) = (call(&held, &of_held), call(&count, &of_count));
    holding.listener = Some(listener.clone());
    counting.listener = Some(listener.clone());
    let mut holding = std::pin::pin!(session.call(holding));
    tokio::select! {
        ended = &mut holding => panic!("{ended:?}"),
        () = listener.begun.notified() => {}
    }
    of_count.cancel();
    let counted = tokio::time::timeout(SOON, session.call(counting)).await;
    match counted.expect("its caller does not wait") {
        Err(RequestError::Failed(failure)) => {
            assert!(
                failure.kind == UpstreamFailureKind::Cancelled && !failure.is_handed_over,
                "{failure}"
            );
        }
        other => panic!("{other:?}"),
    }
    of_held.cancel();
    holding.await.expect("an answer");
    let counted = session
        .call(call(&count, &CancellationToken::new()))
        .await
        .expect("an answer");
    assert!(
        counted.get().contains(" 1\""),
        "it is the first that the server hears of: {counted}"
    );
    session.close().await;
}

#[tokio::test]
async fn questions_that_wait_for_one_caller_are_bounded() {
    let session = asking().await;
    let (pester, cancel) = (asked("pester", None), CancellationToken::new());
    let mut pestering = call(&pester, &cancel);
    pestering.listener = Some(Arc::new(Agreeable {
        is_undecided: true,
        ..Agreeable::default()
    }));
    let answer = tokio::time::timeout(SOON, session.call(pestering))
        .await
        .expect("some are refused");
    let answer = answer.expect("an answer");
    assert!(answer.get().contains("three were refused"), "{answer}");
    session.close().await;
}

/// A server that says more than anyone can want to hear is read slowly: its pipe fills, and it waits.
#[tokio::test]
async fn a_server_that_floods_is_read_slowly() {
    let session = open(&["good"], UpstreamSettings::default())
        .await
        .expect("a session");
    let messages = Arc::new(Mutex::new(Vec::new()));
    let (asked, cancel) = (asked("flood", None), CancellationToken::new());
    let mut flooding = call(&asked, &cancel);
    flooding.listener = Some(Arc::new(HeardLog(messages.clone())));
    let mut flooding = Box::pin(session.call(flooding));
    let began = Instant::now();
    // On a busy machine the server begins late.
    while began.elapsed() < SOON {
        let ended = tokio::time::timeout(Duration::from_secs(1), &mut flooding).await;
        assert!(ended.is_err());
        if messages.lock().len() >= 1000 {
            break;
        }
    }
    drop(flooding);
    let spans = began.elapsed().as_millis() / 100 + 2;
    let heard = messages.lock().len();
    assert!(heard >= 1000, "it is heard: {heard}");
    assert!(
        heard as u128 <= 1000 * spans,
        "{heard} messages in {:?}",
        began.elapsed()
    );
    session.close().await;
}

/// A caller who says yes to every question, unless it cannot decide.
#[derive(Default)]
pub(crate) struct Agreeable {
    /// Notified of progress.
    pub(crate) begun: Notify,
    pub(crate) asked: AtomicUsize,
    pub(crate) is_undecided: bool,
}

impl UpstreamListener for Agreeable {
    fn wants_progress(&self) -> bool {
        true
    }

    fn progress(&self, _progress: UpstreamProgress) {
        self.begun.notify_one();
    }

    fn log_level(&self) -> Option<&'static str> {
        None
    }

    fn log(&self, _level: &str, _logger: &str, _data: &RawValue) {}

    fn ask(&self, _question: UpstreamQuestion) -> Answering {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let is_undecided = self.is_undecided;
        Box::pin(async move {
            if is_undecided {
                std::future::pending::<()>().await;
            }
            Some(
                serde_json::value::to_raw_value(&json!({ "action": "accept", "content": {} }))
                    .expect("JSON"),
            )
        })
    }
}

struct HeardLog(Arc<Mutex<Vec<String>>>);

impl UpstreamListener for HeardLog {
    fn wants_progress(&self) -> bool {
        false
    }

    fn progress(&self, _progress: UpstreamProgress) {}

    fn log_level(&self) -> Option<&'static str> {
        Some("info")
    }

    fn log(&self, _level: &str, _logger: &str, data: &RawValue) {
        self.0.lock().push(data.get().to_owned());
    }

    fn ask(&self, _question: UpstreamQuestion) -> Answering {
        Box::pin(async { None })
    }
}

struct Heard(Arc<Mutex<Vec<UpstreamProgress>>>);

impl UpstreamListener for Heard {
    fn wants_progress(&self) -> bool {
        true
    }

    fn progress(&self, progress: UpstreamProgress) {
        self.0.lock().push(progress);
    }

    fn log_level(&self) -> Option<&'static str> {
        None
    }

    fn log(&self, _level: &str, _logger: &str, _data: &RawValue) {}

    fn ask(&self, _question: UpstreamQuestion) -> Answering {
        Box::pin(async { None })
    }
}
