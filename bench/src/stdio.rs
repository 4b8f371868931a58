//! The generator for servers that speak over pipes: a window of calls under way, one line each.

use std::{
    collections::HashMap,
    hint::spin_loop,
    io::{self, BufRead, BufReader, Read, Write},
    process::{ChildStdin, ChildStdout},
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use nix::fcntl::{
    FcntlArg::{F_GETFL, F_SETFL},
    OFlag, fcntl,
};
use serde_json::{Value, json};
use weir_bench::load::quantiles;

use crate::{
    pressure::LoadOutcome,
    process::MeasuredProcess,
    wire::{BenchQuestion, initialize, initialized},
};

pub(crate) struct PipeClient {
    to: ChildStdin,
    from: BufReader<PolledPipe>,
    /// The question, with the server's name for the tool.
    question: BenchQuestion,
    last_id: u64,
}

impl PipeClient {
    /// Opens the conversation and asks until the first good answer.
    pub(crate) fn open(
        process: &mut MeasuredProcess,
        question: &BenchQuestion,
    ) -> anyhow::Result<Self> {
        let child = process.child();
        let to = child.stdin.take().context("stdin is a pipe")?;
        let from = PolledPipe::new(child.stdout.take().context("stdout is a pipe")?)?;
        let from = BufReader::with_capacity(1 << 16, from);
        let mut pipes = Self {
            to,
            from,
            question: question.clone(),
            last_id: 10,
        };
        pipes.send(&initialize())?;
        pipes.answer_to(1)?;
        pipes.send(&initialized())?;
        pipes.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {} }))?;
        let tools = pipes.answer_to(2)?;
        let names = tools["result"]["tools"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|tool| tool["name"].as_str());
        let name = names
            .into_iter()
            .find(|name| name.ends_with(&question.tool));
        pipes.question.tool = name
            .context("the server does not list the tool")?
            .to_owned();
        pipes.send(&pipes.question.message(3))?;
        let answer = pipes.answer_to(3)?;
        question.judge(&answer.to_string())?;
        Ok(pipes)
    }

    /// Makes `calls` calls, `window` at a time.
    pub(crate) fn run(
        &mut self,
        process: &MeasuredProcess,
        window: u64,
        calls: u64,
    ) -> anyhow::Result<LoadOutcome> {
        let (cpu, own_cpu) = (process.cpu(), process.own_cpu());
        let message = self.question.message(0).to_string();
        let (before, after) = message
            .split_once("\"id\":0")
            .context("a message has an id")?;
        let (before, after) = (before.to_owned(), after.to_owned());
        let began = Instant::now();
        let mut under_way = HashMap::new();
        let mut times = Vec::with_capacity(usize::try_from(calls)?);
        let (mut asked, mut bytes, mut line) = (0, 0, Vec::new());
        while asked < window.min(calls) {
            self.ask(&before, &after, &mut under_way)?;
            asked += 1;
        }
        while !under_way.is_empty() {
            line.clear();
            if self.from.read_until(b'\n', &mut line)? == 0 {
                bail!("the server closed its output");
            }
            let Some(began) = id_of(&line).and_then(|id| under_way.remove(&id)) else {
                continue;
            };
            let took: Duration = Instant::elapsed(&began);
            times.push(u32::try_from(took.as_micros()).unwrap_or(u32::MAX));
            bytes += line.len() as u64;
            if asked < calls {
                self.ask(&before, &after, &mut under_way)?;
                asked += 1;
            }
        }
        let seconds = began.elapsed().as_secs_f64();
        let (p50_us, p99_us) = quantiles(&mut times);
        let cpu_seconds = process.cpu() - cpu;
        let own_cpu_seconds = process
            .own_cpu()
            .zip(own_cpu)
            .map(|(after, before)| after - before);
        Ok(LoadOutcome {
            calls,
            seconds,
            cpu_seconds,
            own_cpu_seconds,
            body_bytes: bytes,
            p50_us,
            p99_us,
        })
    }

    fn ask(
        &mut self,
        before: &str,
        after: &str,
        under_way: &mut HashMap<u64, Instant>,
    ) -> anyhow::Result<()> {
        self.last_id += 1;
        under_way.insert(self.last_id, Instant::now());
        self.to
            .write_all(format!("{before}\"id\":{}{after}\n", self.last_id).as_bytes())?;
        Ok(())
    }

    fn send(&mut self, message: &Value) -> anyhow::Result<()> {
        Ok(self.to.write_all(format!("{message}\n").as_bytes())?)
    }

    fn answer_to(&mut self, id: u64) -> anyhow::Result<Value> {
        loop {
            let mut line = String::new();
            if self.from.read_line(&mut line)? == 0 {
                bail!("the server closed its output");
            }
            let message: Value = serde_json::from_str(&line).unwrap_or_default();
            if message["id"] == id {
                return Ok(message);
            }
        }
    }
}

/// A pipe that is asked again and again: a generator that sleeps is woken at each answer, at the server's expense.
struct PolledPipe(ChildStdout);

/// The pauses between two looks at a pipe in which nothing came.
const PAUSES: usize = 100;
/// A server that is silent for this long has lost calls.
const SILENCE_MAX: Duration = Duration::from_secs(60);

impl PolledPipe {
    fn new(pipe: ChildStdout) -> anyhow::Result<Self> {
        let flags = OFlag::from_bits_retain(fcntl(&pipe, F_GETFL)?);
        fcntl(&pipe, F_SETFL(flags | OFlag::O_NONBLOCK))?;
        Ok(Self(pipe))
    }
}

impl Read for PolledPipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let asked = Instant::now();
        loop {
            match self.0.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return result,
            }
            if asked.elapsed() > SILENCE_MAX {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "the server has fallen silent",
                ));
            }
            (0..PAUSES).for_each(|_| spin_loop());
        }
    }
}

/// Returns the number after `"id":`, at the end of the line or at its beginning: an answer may hold other ids in
/// between.
fn id_of(line: &[u8]) -> Option<u64> {
    let number = |from: usize| {
        let digits: Vec<u8> = line[from..]
            .iter()
            .copied()
            .take_while(u8::is_ascii_digit)
            .collect();
        let follows = line.get(from + digits.len());
        let ends = follows == Some(&b',') || follows == Some(&b'}');
        ends.then(|| String::from_utf8(digits).ok()?.parse().ok())
            .flatten()
    };
    let places = |window: &[u8]| window == b"\"id\":";
    let first = line.windows(5).position(places)?;
    let last = line.windows(5).rposition(places)?;
    number(first + 5)
        .filter(|_| first < 20)
        .or_else(|| number(last + 5))
}
