//! A server as our child: one line per message, in its own process group, and always waited for.

use std::{
    ffi::OsStr,
    mem,
    path::Path,
    process::{ExitStatus, Stdio},
    sync::Arc,
};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::{
        AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _,
        BufReader,
    },
    process::{Child, ChildStdin},
    sync::{mpsc, watch},
    task::{coop::consume_budget, yield_now},
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use weir_admission::{ApartTurn, LARGE_BYTES};

use super::{large::LargeAnswer, spread::SpreadMessage, stderr::StderrTail};
use crate::{
    error::{UpstreamFailure, UpstreamFailureKind},
    guard::GRACE,
    inbox::UpstreamInbox,
    settings::UpstreamCommand,
    unreadable::id_of_parts,
};

/// The variables that a child gets of our environment.
const INHERITED: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];
/// Messages that wait for a child that does not read.
const QUEUE_MAX: usize = 64;
/// The bytes at the end of a line that is longer than allowed in which the id of its request is looked for.
const END_BYTES: usize = 256;
/// How often a line may be as long as allowed before its child is ended.
const SKIPPED_TIMES: usize = 16;
/// The bytes of a large message after which others run: a child may write it as fast as it is read.
const PIECE_BYTES: usize = 256 << 10;

pub(crate) struct ChildLink {
    lines: mpsc::Sender<String>,
    stop: CancellationToken,
    ended: watch::Receiver<bool>,
    stderr: Arc<StderrTail>,
}

impl ChildLink {
    pub(crate) fn start(
        command: &UpstreamCommand,
        message_max: usize,
        inbox: Arc<UpstreamInbox>,
    ) -> Result<Self, UpstreamFailure> {
        let name = Path::new(&command.program)
            .file_name()
            .unwrap_or(&command.program)
            .to_string_lossy()
            .into_owned();
        if let Some(folder) = command.folder.as_deref().filter(|folder| !folder.is_dir()) {
            return Err(not_started(
                &name,
                &format!("its working folder {} does not exist", folder.display()),
            )
            .step("make the folder, or give another one as `folder`"));
        }
        if !is_there(command) {
            return Err(not_started(&name, "there is no such program")
                .step(format!("install `{name}`, or give the path of its program"))
                .step("look at PATH: a server sees PATH, HOME, LANG, TMPDIR and what it is given, nothing else"));
        }
        let mut words = command.guard.clone();
        if !words.is_empty() {
            words.extend(command.kept.words());
            words.push("--".into());
        }
        words.push(command.program.clone());
        words.extend_from_slice(&command.arguments);
        let mut process = tokio::process::Command::new(&words[0]);
        process
            .args(&words[1..])
            .env_clear()
            .process_group(0)
            .kill_on_drop(true);
        process
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        process.envs(
            INHERITED
                .iter()
                .filter_map(|name| Some((name, std::env::var_os(name)?))),
        );
        process.envs(&command.environment);
        if let Some(folder) = &command.folder {
            process.current_dir(folder);
        }
        let mut child = process
            .spawn()
            .map_err(|error| not_started(&name, &error.to_string()))?;
        let stdin = child.stdin.take().expect("stdin is piped");
        let stdout = child.stdout.take().expect("stdout is piped");
        let stderr = Arc::new(StderrTail::new(command));
        tokio::spawn(
            stderr
                .clone()
                .read(child.stderr.take().expect("stderr is piped")),
        );
        let (lines, queue) = mpsc::channel(QUEUE_MAX);
        let stop = CancellationToken::new();
        tokio::spawn(write(stdin, queue, stop.clone()));
        let reader = read(
            stdout,
            message_max,
            inbox.clone(),
            lines.downgrade(),
            stop.clone(),
        );
        let (end, ended) = watch::channel(false);
        let life = ChildTask {
            child,
            name,
            stop: stop.clone(),
            stderr: stderr.clone(),
            inbox,
        };
        tokio::spawn(async move {
            life.run(reader).await;
            let _ = end.send(true); // the receiver may be gone
        });
        Ok(Self {
            lines,
            stop,
            ended,
            stderr,
        })
    }

    pub(crate) async fn send(&self, line: String) -> Result<(), UpstreamFailure> {
        // The writer is gone if the child is, and the inbox has the reason.
        let _ = self.lines.send(line).await;
        Ok(())
    }

    pub(crate) fn stderr(&self) -> String {
        self.stderr.text()
    }

    pub(crate) async fn close(&self) {
        self.stop.cancel();
        let _ = self.ended.clone().wait_for(|ended| *ended).await;
    }
}

impl Drop for ChildLink {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// A child from its start to its end.
struct ChildTask {
    child: Child,
    name: String,
    stop: CancellationToken,
    stderr: Arc<StderrTail>,
    inbox: Arc<UpstreamInbox>,
}

impl ChildTask {
    async fn run(mut self, reader: impl Future<Output = ()> + Send + 'static) {
        // The group is killed with us if the runtime ends before the child does.
        let mut group = ProcessGroup(
            self.child
                .id()
                .and_then(|id| i32::try_from(id).ok())
                .and_then(Pid::from_raw),
        );
        let mut reader = tokio::spawn(reader);
        let status = tokio::select! {
            status = self.child.wait() => {
                // The child's last output is read before its end is reported.
                let _ = timeout(GRACE / 4, &mut reader).await;
                self.log_end(status.ok())
            }
            () = self.stop.cancelled() => self.end(&group).await,
            // A child that ended a moment ago is asked how it ended; one that runs on without an output is of no use.
            _ = &mut reader => match timeout(GRACE / 4, self.child.wait()).await {
                Ok(status) => self.log_end(status.ok()),
                Err(_) => {
                    self.inbox.log_end("it closed its output", &self.stderr.text());
                    self.inbox.close(ended(format!("`{}` closed its output", self.name), &self.stderr));
                    self.stop.cancel();
                    self.end(&group).await
                }
            }
        };
        self.stop.cancel();
        group.kill();
        reader.abort();
        let how = how_it_ended(status);
        self.inbox
            .close(ended(format!("`{}` {how}", self.name), &self.stderr));
    }

    /// Logs that the child ended on its own, or was ended by another program.
    fn log_end(&self, status: Option<ExitStatus>) -> Option<ExitStatus> {
        self.inbox
            .log_end(&format!("it {}", how_it_ended(status)), &self.stderr.text());
        status
    }

    /// Ends the child. Its stdin is closed by the writer, which is notified of the end as well.
    async fn end(&mut self, group: &ProcessGroup) -> Option<ExitStatus> {
        for signal in [Signal::TERM, Signal::KILL] {
            if let Ok(status) = timeout(GRACE, self.child.wait()).await {
                return status.ok();
            }
            group.signal(signal);
        }
        self.child.wait().await.ok()
    }
}

/// The child's process group: the child, its guard, and their children.
struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    fn signal(&self, signal: Signal) {
        if let Some(id) = self.0 {
            let _ = kill_process_group(id, signal); // it may be gone already
        }
    }

    fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.0 = None;
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}

async fn write(mut stdin: ChildStdin, mut queue: mpsc::Receiver<String>, stop: CancellationToken) {
    let write = async {
        while let Some(line) = queue.recv().await {
            let mut bytes = line.into_bytes();
            bytes.push(b'\n');
            if stdin.write_all(&bytes).await.is_err() || stdin.flush().await.is_err() {
                return;
            }
        }
    };
    tokio::select! { () = write => {}, () = stop.cancelled() => {} }
}

/// Reads lines until the end, none longer than allowed.
async fn read(
    stdout: impl AsyncRead + Unpin,
    message_max: usize,
    inbox: Arc<UpstreamInbox>,
    lines: mpsc::WeakSender<String>,
    stop: CancellationToken,
) {
    let mut stdout = BufReader::with_capacity(64 * 1024, stdout);
    let (mut line, mut spread) = (Vec::new(), SpreadMessage::default());
    let mut large = LargeAnswer::default();
    while read_line(&mut stdout, message_max + 1, &mut line).await {
        consume_budget().await; // lines that are there already would be read without a pause
        if line.len() > message_max {
            let Some(id) = skip_answer(&mut stdout, message_max, &line).await else {
                inbox.close(too_large(message_max));
                return stop.cancel();
            };
            // Others wait for the answers behind it.
            inbox.fail(id, too_large(message_max).into());
            continue;
        }
        if line.capacity() > 1 << 20 && line.len() < 1 << 16 {
            line.shrink_to(1 << 16);
        }
        if spread.length() == 0 {
            match large.begin(mem::take(&mut line), &inbox).await {
                Some(other) => line = other,
                None => {
                    inbox.pace().await;
                    continue;
                }
            }
        }
        let text = String::from_utf8_lossy(&line);
        if text.trim().is_empty() {
            inbox.count_unasked(text.len());
            inbox.pace().await;
            continue;
        }
        let is_large = text.len() > LARGE_BYTES;
        let join = || (spread.interrupt(&text), spread.join(text));
        let (interrupted, whole) = match is_large {
            true => ApartTurn::wait().await.run(join),
            false => join(),
        };
        if spread.length() > message_max {
            inbox.close(too_large(message_max));
            return stop.cancel();
        }
        for text in interrupted.into_iter().chain(whole) {
            for reply in inbox.receive(&text, None).await {
                // A child that asks and does not read the answers must not keep us from reading.
                let _ = lines.upgrade().map(|lines| lines.try_send(reply));
            }
            inbox.fail_behind_text(&text).await;
        }
        if inbox.is_closed() {
            return stop.cancel();
        }
        inbox.pace().await;
    }
    large.finish().await;
}

/// Reads a line, or the beginning of one that is longer than allowed. Returns `false` at the end.
async fn read_line(
    stdout: &mut (impl AsyncBufRead + Unpin),
    length_max: usize,
    line: &mut Vec<u8>,
) -> bool {
    line.clear();
    loop {
        let length = PIECE_BYTES.min(length_max - line.len());
        let mut bounded = (&mut *stdout).take(length as u64);
        match bounded.read_until(b'\n', line).await {
            Ok(0) => return !line.is_empty(),
            Ok(_) if line.ends_with(b"\n") || line.len() >= length_max => return true,
            Ok(_) => yield_now().await,
            Err(_) => return false,
        }
    }
}

/// Reads on to the end of a line that is longer than allowed. Returns the id of the request that it answers; `None` if that is
/// not known, or the line does not end.
async fn skip_answer(
    stdout: &mut (impl AsyncBufRead + Unpin),
    message_max: usize,
    beginning: &[u8],
) -> Option<u64> {
    let mut end = beginning[beginning.len().saturating_sub(END_BYTES)..].to_vec();
    let mut left = message_max.saturating_mul(SKIPPED_TIMES);
    while !end.ends_with(b"\n") {
        end.drain(..end.len().saturating_sub(END_BYTES));
        let mut bounded = (&mut *stdout).take(PIECE_BYTES as u64);
        match bounded.read_until(b'\n', &mut end).await {
            Ok(read @ 1..) => left = left.checked_sub(read)?,
            Ok(_) | Err(_) => return None,
        }
        yield_now().await;
    }
    id_of_parts(beginning, &end)
}

pub(super) fn too_large(message_max: usize) -> UpstreamFailure {
    let cause = format!("it sent one of more than {message_max} bytes");
    UpstreamFailure::new(
        UpstreamFailureKind::TooLarge,
        "every message of the server to be within its bound",
        cause,
    )
    .step("ask the server for less, or raise the bound")
}

fn not_started(name: &str, cause: &str) -> UpstreamFailure {
    UpstreamFailure::new(
        UpstreamFailureKind::Start,
        format!("`{name}` to start as an MCP server"),
        cause,
    )
    .before_sending()
}

fn ended(cause: String, stderr: &StderrTail) -> UpstreamFailure {
    let text = stderr.text();
    let failure = UpstreamFailure::new(
        UpstreamFailureKind::Closed,
        "the server to keep running while it is used",
        cause,
    )
    .stderr(&text)
    .step("run the command in a terminal: it should wait for input, and print nothing")
    .step("give it what it needs: arguments, or variables of its environment");
    let is_denied = [
        "EACCES",
        "EPERM",
        "ermission denied",
        "not permitted",
        "readonly database",
        "unable to open database file",
    ]
    .iter()
    .any(|word| text.contains(word));
    match stderr.is_sandboxed && is_denied {
        true => failure.step(
            "give it a `folder` of its own if it makes files next to the gateway's, or `sandbox = false` if it needs rights \
             that it lost (docs/upstreams.md)",
        ),
        false => failure,
    }
}

fn how_it_ended(status: Option<ExitStatus>) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match status.map(|status| (status.code(), status.signal())) {
        Some((Some(code), _)) => format!("ended with exit code {code}"),
        Some((None, Some(signal))) => format!("was ended by signal {signal}"),
        Some((None, None)) | None => "ended".to_owned(),
    }
}

/// Returns `true` if the program exists where the child would be started, so that the error can say that it is missing.
fn is_there(command: &UpstreamCommand) -> bool {
    let program = Path::new(&command.program);
    if program.components().count() > 1 {
        let folder = command.folder.as_deref().unwrap_or(Path::new("."));
        return program.is_file() || folder.join(program).is_file();
    }
    let path = command
        .environment
        .get(OsStr::new("PATH"))
        .cloned()
        .or_else(|| std::env::var_os("PATH"));
    std::env::split_paths(&path.unwrap_or_default()).any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use std::{
        future::poll_fn,
        io::Cursor,
        pin::pin,
        time::{Duration, Instant},
    };

    use weir_admission::long_work_turns;

    use super::*;
    use crate::{error::RequestError, settings::UpstreamSettings};

    #[tokio::test]
    async fn lines_are_read_whole_whatever_their_length() {
        let long = "x".repeat(3 * PIECE_BYTES + 7);
        let exact = "y".repeat(PIECE_BYTES - 1);
        let text = format!("{long}\n{exact}\n\nlast");
        let mut stdout = text.as_bytes();
        let (mut line, mut read) = (Vec::new(), Vec::new());
        while read_line(&mut stdout, 8 << 20, &mut line).await {
            read.push(String::from_utf8(line.clone()).expect("a text"));
        }
        let expected = [
            long + "\n",
            exact + "\n",
            "\n".to_owned(),
            "last".to_owned(),
        ];
        assert!(read == expected, "{} lines", read.len());
    }

    #[tokio::test]
    async fn a_child_that_writes_without_end_is_read_slowly() {
        let large = format!(r#"{{"method":"a","params":"{}"}}"#, "x".repeat(LARGE_BYTES));
        for written in ["\n".repeat(5_000), format!("{large}\n").repeat(5)] {
            let inbox = UpstreamInbox::new(&UpstreamSettings::default());
            let (replies, _queue) = mpsc::channel(1);
            let written = Cursor::new(written.into_bytes());
            let (began, stop) = (Instant::now(), CancellationToken::new());
            read(written, 2 * LARGE_BYTES, inbox, replies.downgrade(), stop).await;
            assert!(began.elapsed() >= Duration::from_millis(300));
        }
    }

    /// All turns for long work are taken, so that the large answer is not read before they are given back.
    #[tokio::test]
    async fn an_answer_does_not_wait_for_a_large_one_before_it() {
        let patience = Duration::from_secs(60);
        let mut turns = Vec::new();
        for _ in 0..long_work_turns().available_permits() {
            turns.push(ApartTurn::wait().await);
        }
        let inbox = UpstreamInbox::new(&UpstreamSettings::default());
        let mut large = inbox.expect(1, None).expect("it is open");
        let mut small = inbox.expect(2, None).expect("it is open");
        let text = "x".repeat(LARGE_BYTES);
        let written = format!("{{\"id\":1,\"result\":\"{text}\"}}\n{{\"id\":2,\"result\":{{}}}}\n");
        let (replies, _queue) = mpsc::channel(1);
        let reading = tokio::spawn(read(
            Cursor::new(written.into_bytes()),
            2 * LARGE_BYTES,
            inbox.clone(),
            replies.downgrade(),
            CancellationToken::new(),
        ));
        let answer = timeout(patience, &mut small.answer).await;
        let answer = answer.expect("it does not wait").expect("it came");
        assert_eq!(answer.expect("a result").get(), "{}");
        drop(turns);
        let answer = timeout(patience, &mut large.answer).await;
        let answer = answer.expect("its turn has come").expect("it came");
        assert!(answer.expect("a result").get().contains(&text));
        reading.await.expect("the output ends");
    }

    #[tokio::test]
    async fn an_answer_over_its_bound_fails_its_own_call_alone() {
        let long = "x".repeat(3 * PIECE_BYTES);
        for (answer, is_known) in [
            (
                format!(r#"{{"jsonrpc":"2.0","id":1,"result":"{long}"}}"#),
                true,
            ),
            (
                format!(r#"{{"result":"{long}","jsonrpc":"2.0","id":1}}"#),
                true,
            ),
            (
                format!(r#"{{"jsonrpc":"2.0","method":"ping","id":1,"params":"{long}"}}"#),
                false,
            ),
            (long.repeat(SKIPPED_TIMES), false),
        ] {
            let inbox = UpstreamInbox::new(&UpstreamSettings::default());
            let mut large = inbox.expect(1, None).expect("it is open");
            let mut small = inbox.expect(2, None).expect("it is open");
            let written = format!("{answer}\n{{\"id\":2,\"result\":{{}}}}\n");
            let (replies, _queue) = mpsc::channel(1);
            let stop = CancellationToken::new();
            let written = Cursor::new(written.into_bytes());
            read(
                written,
                PIECE_BYTES,
                inbox.clone(),
                replies.downgrade(),
                stop.clone(),
            )
            .await;
            let failed = large.answer.try_recv().expect("it has ended");
            let is_too_large = matches!(
                failed,
                Err(RequestError::Failed(failure)) if failure.kind == UpstreamFailureKind::TooLarge
            );
            assert!(is_too_large);
            let other = small.answer.try_recv().expect("it has ended");
            assert_eq!(other.is_ok(), is_known, "{}", &answer[..40]);
            assert_eq!(stop.is_cancelled(), !is_known, "{}", &answer[..40]);
        }
    }

    #[tokio::test]
    async fn a_line_over_its_bound_is_not_read_on() {
        let endless = vec![b'x'; 2 * PIECE_BYTES];
        let (mut stdout, mut line) = (&endless[..], Vec::new());
        let length_max = PIECE_BYTES + 1;
        assert!(read_line(&mut stdout, length_max, &mut line).await);
        assert_eq!(line.len(), length_max);
    }

    #[tokio::test]
    async fn others_run_while_a_long_line_is_read() {
        let text = vec![b'x'; 8 * PIECE_BYTES];
        let mut line = Vec::new();
        let mut stdout = &text[..];
        let mut reading = pin!(read_line(&mut stdout, 8 << 20, &mut line));
        let mut polls = 0;
        let whole = poll_fn(|context| {
            polls += 1;
            reading.as_mut().poll(context)
        });
        assert!(whole.await);
        assert!(polls >= 8, "{polls}");
    }
}
