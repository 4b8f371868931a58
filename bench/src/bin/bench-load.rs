//! The generator: HTTP/1.1 over kept connections, one call under way on each, every answer read to its end.
//!
//! The generator polls its sockets in a circle and never sleeps, unless it is started with the option that leaves its core to
//! the server. A sleeping generator is woken by the server at each answer, at the server's expense: 10 µs on virtual
//! processors, and only for servers slow enough that it had gone to sleep.
//!
//! Takes a [`GeneratorPlan`] on standard input and prints a [`GeneratorReport`].
#![expect(clippy::print_stdout, reason = "its report")]

use std::{
    cell::{Cell, RefCell},
    future::poll_fn,
    hint::spin_loop,
    io::{self, Read, Write},
    net::TcpStream,
    pin::{Pin, pin},
    task::{Context as Polled, Poll, Waker},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use bytes::Bytes;
use futures::{FutureExt, future::maybe_done};
use http_body_util::{BodyExt, Full};
use hyper::{
    Method, Request,
    client::conn::http1::{SendRequest, handshake},
};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use weir_bench::load::{GeneratorPlan, GeneratorReport, quantiles};

/// The pause after a round over the sockets in which nothing came: the other core is the server's, perhaps only half
/// a core.
const PAUSES: usize = 100;
/// The pause if the server needs this core too.
const NAP: Duration = Duration::from_micros(50);
/// A server that is silent for this long has lost calls.
const SILENCE_MAX: Duration = Duration::from_secs(60);

fn main() -> anyhow::Result<()> {
    let plan: GeneratorPlan =
        serde_json::from_reader(io::stdin().lock()).context("no plan on standard input")?;
    let load = LoadRun {
        plan: &plan,
        moved: Cell::default(),
        times: RefCell::default(),
        bytes: Cell::default(),
    };
    let began = Instant::now();
    let report = load.run(began)?;
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

struct LoadRun<'a> {
    plan: &'a GeneratorPlan,
    /// Whether anything came or went since this was last asked.
    moved: Cell<bool>,
    /// The time of each call, in microseconds.
    times: RefCell<Vec<u32>>,
    bytes: Cell<u64>,
}

impl LoadRun<'_> {
    fn run(&self, began: Instant) -> anyhow::Result<GeneratorReport> {
        let connections = self.plan.connections.len();
        // The connections are polled in a circle by hand: `join_all` waits to be called back if there are many.
        let talk = |number| Box::pin(maybe_done(self.connection(number, connections, began)));
        let mut talks: Vec<_> = (0..connections).map(talk).collect();
        let mut context = Polled::from_waker(Waker::noop());
        let mut heard = Instant::now();
        loop {
            let under_way = talks
                .iter_mut()
                .filter_map(|talk| talk.as_mut().poll(&mut context).is_pending().then_some(()));
            if under_way.count() == 0 {
                break;
            }
            if self.moved.take() {
                heard = Instant::now();
            } else if heard.elapsed() > SILENCE_MAX {
                bail!("the server has fallen silent");
            }
            match self.plan.shares_its_core {
                true => sleep(NAP),
                false => (0..PAUSES).for_each(|_| spin_loop()),
            }
        }
        let seconds = began.elapsed().as_secs_f64();
        talks
            .iter_mut()
            .filter_map(|talk| talk.as_mut().take_output())
            .collect::<anyhow::Result<()>>()?;
        let mut times = self.times.borrow_mut();
        let (p50_us, p99_us) = quantiles(&mut times);
        Ok(GeneratorReport {
            calls: times.len() as u64,
            seconds,
            body_bytes: self.bytes.get(),
            p50_us,
            p99_us,
        })
    }

    async fn connection(&self, number: usize, of: usize, began: Instant) -> anyhow::Result<()> {
        let stream = TcpStream::connect(&self.plan.connections[number].address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let (sender, connection) = handshake(TokioIo::new(PolledStream {
            stream,
            moved: &self.moved,
        }))
        .await?;
        let mut connection = pin!(connection.fuse());
        let mut talk = pin!(self.talk(sender, number, of, began));
        poll_fn(|context| {
            let _ = connection.as_mut().poll(context);
            talk.as_mut().poll(context)
        })
        .await
    }

    async fn talk(
        &self,
        mut sender: SendRequest<Full<Bytes>>,
        number: usize,
        of: usize,
        began: Instant,
    ) -> anyhow::Result<()> {
        let body = Bytes::from(self.plan.body.clone());
        // The calls are in equal parts: each connection makes the same number.
        for call in 0..self.plan.calls.div_ceil(of as u64) {
            let due = match self.plan.rate {
                Some(rate) => {
                    let seconds =
                        (call as f64 + number as f64 / of as f64) * of as f64 / rate as f64;
                    let due = began + Duration::from_secs_f64(seconds);
                    until(due).await;
                    self.moved.set(true);
                    due
                }
                None => Instant::now(),
            };
            let mut request = Request::builder().method(Method::POST).uri(&self.plan.path);
            let connection = &self.plan.connections[number];
            request = request.header("host", &connection.address);
            for (name, value) in &connection.headers {
                request = request.header(name, value);
            }
            let response = sender
                .send_request(request.body(Full::new(body.clone()))?)
                .await?;
            let status = response.status();
            let answer = response.into_body().collect().await?.to_bytes();
            if !status.is_success() {
                bail!(
                    "HTTP {status}: {}",
                    String::from_utf8_lossy(&answer[..answer.len().min(400)])
                );
            }
            // A call that waits behind a late answer is late as well: its caller did not wait with asking.
            self.times
                .borrow_mut()
                .push(u32::try_from(due.elapsed().as_micros()).unwrap_or(u32::MAX));
            self.bytes.set(self.bytes.get() + answer.len() as u64);
            poll_fn(|context| sender.poll_ready(context)).await?;
        }
        Ok(())
    }
}

async fn until(time: Instant) {
    poll_fn(|_| {
        if Instant::now() >= time {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

/// A socket that is asked again in the next round instead of calling back.
struct PolledStream<'a> {
    stream: TcpStream,
    moved: &'a Cell<bool>,
}

impl PolledStream<'_> {
    fn done<T>(&self, result: io::Result<T>) -> Poll<io::Result<T>> {
        match result {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
            result => {
                self.moved.set(true);
                Poll::Ready(result)
            }
        }
    }
}

impl AsyncRead for PolledStream<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Polled<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let result = self.stream.read(buffer.initialize_unfilled());
        self.done(result).map_ok(|read| buffer.advance(read))
    }
}

impl AsyncWrite for PolledStream<'_> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Polled<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = self.stream.write(bytes);
        self.done(result)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Polled<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Polled<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use weir_bench::load::GeneratorConnection;

    use super::*;

    const RATE: u64 = 100;
    const CALLS: u64 = 20;
    /// The time in which all of the calls become due.
    const STALL: Duration = Duration::from_millis(1_000 * CALLS / RATE);

    /// Answers over one connection: the first time late, and then at once.
    fn stalled(listener: &TcpListener) {
        let (mut stream, _) = listener.accept().expect("the generator connects");
        for call in 0..CALLS {
            let mut request = Vec::new();
            while !request.ends_with(b"{}") {
                let mut part = [0; 4_096];
                let read = stream.read(&mut part).expect("a request");
                assert!(read > 0, "the generator left");
                request.extend_from_slice(&part[..read]);
            }
            if call == 0 {
                sleep(STALL);
            }
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
                .expect("the generator listens");
        }
        let _ = stream
            .read(&mut [0; 1])
            .expect("the generator leaves first");
    }

    #[test]
    fn calls_at_a_rate_are_late_behind_a_late_answer() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = listener.local_addr().expect("it listens").to_string();
        let server = std::thread::spawn(move || stalled(&listener));
        let connections = vec![GeneratorConnection {
            address,
            headers: vec![],
        }];
        let (path, body, rate) = ("/mcp".to_owned(), "{}".to_owned(), Some(RATE));
        let plan = GeneratorPlan {
            path,
            connections,
            body,
            calls: CALLS,
            rate,
            shares_its_core: true,
        };
        let load = LoadRun {
            plan: &plan,
            moved: Cell::default(),
            times: RefCell::default(),
            bytes: Cell::default(),
        };
        let report = load.run(Instant::now()).expect("every call is answered");
        server.join().expect("the server ends");
        assert_eq!(report.calls, CALLS);
        // Half of the requests became due in the first half of the stall.
        assert!(
            report.p50_us >= STALL.as_micros() as f64 / 3.0,
            "{report:?}"
        );
    }
}
