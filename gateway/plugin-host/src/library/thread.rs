//! A library in a thread of this process: one thread an instance, so that what a library keeps by thread stays one
//! instance's.

use std::{
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicUsize, Ordering},
        mpsc,
    },
};

use super::{
    abi::Answer,
    loaded::{self, Loaded, failed},
    message::Message,
};

/// Threads whose calls were given up and that have not come back: nothing more is called then.
const OVERRUN_MAX: usize = 4;
const STACK_BYTES: usize = 8 << 20;

const IDLE: u8 = 0;
const CALLED: u8 = 1;
const GIVEN_UP: u8 = 2;

pub(super) struct Thread {
    out: mpsc::Sender<Message>,
    incoming: tokio::sync::mpsc::UnboundedReceiver<Message>,
    state: Arc<AtomicU8>,
    overrun: Arc<AtomicUsize>,
}

impl Thread {
    pub(super) fn start(
        plugin: &str,
        loaded: Loaded,
        overrun: &Arc<AtomicUsize>,
    ) -> Result<Self, String> {
        let (out, calls) = mpsc::channel();
        // At most one question waits here: the thread that asks waits for the answer.
        let (asks, incoming) = tokio::sync::mpsc::unbounded_channel();
        let state = Arc::new(AtomicU8::new(IDLE));
        let (seen, counted) = (Arc::clone(&state), Arc::clone(overrun));
        let run = move || run(loaded, calls, asks, &seen, &counted);
        std::thread::Builder::new()
            .name(format!("weir-{plugin}"))
            .stack_size(STACK_BYTES)
            .spawn(run)
            .map_err(|error| format!("no thread can be started for it: {error}"))?;
        Ok(Self {
            out,
            incoming,
            state,
            overrun: Arc::clone(overrun),
        })
    }

    pub(super) fn send(&self, message: Message) -> Result<(), String> {
        if matches!(message, Message::Call { .. }) {
            if self.overrun.load(Ordering::SeqCst) >= OVERRUN_MAX {
                return Err(format!(
                    "{OVERRUN_MAX} of its calls were given up and still run in this process: it is not called until one \
                     comes back; run it in processes of its own (without `in_process`), where they can be ended"
                ));
            }
            self.state.store(CALLED, Ordering::SeqCst);
        }
        self.out.send(message).map_err(|_| ENDED.to_owned())
    }

    pub(super) async fn receive(&mut self) -> Result<Message, String> {
        self.incoming.recv().await.ok_or_else(|| ENDED.to_owned())
    }
}

const ENDED: &str = "its thread ended";

impl Drop for Thread {
    fn drop(&mut self) {
        if self
            .state
            .compare_exchange(CALLED, GIVEN_UP, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
        {
            self.overrun.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// Runs calls until nobody can send any more.
fn run(
    loaded: Loaded,
    calls: mpsc::Receiver<Message>,
    asks: tokio::sync::mpsc::UnboundedSender<Message>,
    state: &AtomicU8,
    overrun: &AtomicUsize,
) {
    let calls = Rc::new(calls);
    let (answers, asking) = (Rc::clone(&calls), asks.clone());
    loaded::answer_with(move |function, head, body| {
        let asked = Message::Call {
            function: function.to_owned(),
            head: head.to_vec(),
            body: body.to_vec(),
        };
        match asking.send(asked).map(|()| answers.recv()) {
            Ok(Ok(Message::Answer(answer))) => answer,
            _ => given_up(),
        }
    });
    while let Ok(Message::Call {
        function,
        head,
        body,
    }) = calls.recv()
    {
        let answer = loaded.call(&function, &head, &body);
        if state.swap(IDLE, Ordering::SeqCst) == GIVEN_UP {
            overrun.fetch_sub(1, Ordering::SeqCst);
        }
        if asks.send(Message::Answer(answer)).is_err() {
            return;
        }
    }
}

fn given_up() -> Answer {
    failed("cancelled", "The call was given up.")
}
