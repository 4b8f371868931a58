//! The engines guests run in, and the tick that keeps every guest interruptible.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::Thread,
    time::Duration,
};

use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

/// The time a guest may run before it is asked to yield. A call whose thread is taken waits that long.
const TICK: Duration = Duration::from_millis(1);

/// Ticks without a running guest before the ticker goes to sleep: an idle gateway should not wake a thousand times a second.
const IDLE_TICKS: u32 = 200;

/// The engine that a component needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EngineSize {
    /// Rust and C: one memory, at most four core instances.
    Small,
    /// JavaScript and Python: an interpreter and its adapters, 8 memories and 64 core instances.
    Large,
}

impl EngineSize {
    /// Returns the word that files of the cache hold.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Large => "large",
        }
    }
}

/// The two engines of the process, each made when a component needs it. There is one pair only, since a pooled engine
/// reserves terabytes of address space.
pub(crate) struct EnginePair {
    small: OnceLock<Engine>,
    large: OnceLock<Engine>,
    /// Runs nothing: compiles on every core, for the others.
    starting: Engine,
    ticker: EngineTicker,
}

impl EnginePair {
    pub(crate) fn shared() -> anyhow::Result<&'static EnginePair> {
        static SHARED: OnceLock<Result<EnginePair, String>> = OnceLock::new();
        let engines =
            SHARED.get_or_init(|| EnginePair::new().map_err(|error| format!("{error:#}")));
        let engines = engines
            .as_ref()
            .map_err(|reason| anyhow::anyhow!("the WebAssembly engine: {reason}"))?;
        engines.ticker.start(engines)?;
        Ok(engines)
    }

    pub(crate) fn get(&self, size: EngineSize) -> &Engine {
        let made = match size {
            EngineSize::Small => &self.small,
            EngineSize::Large => &self.large,
        };
        made.get_or_init(|| engine(size).expect("the same settings were accepted at the start"))
    }

    /// Returns the engine that compiles. Before calls are served it uses every core, and afterwards only one.
    pub(crate) fn compiler(&self, is_serving: bool) -> &Engine {
        if is_serving {
            self.get(EngineSize::Small)
        } else {
            &self.starting
        }
    }

    /// Returns a guard to keep while a guest may run.
    pub(crate) fn running(&self) -> TickerGuard<'_> {
        self.ticker.enter();
        TickerGuard {
            ticker: &self.ticker,
        }
    }

    fn new() -> wasmtime::Result<Self> {
        let starting = Engine::new(configuration().parallel_compilation(true))?;
        Ok(Self {
            small: OnceLock::new(),
            large: OnceLock::new(),
            starting,
            ticker: EngineTicker::default(),
        })
    }
}

pub(crate) struct TickerGuard<'a> {
    ticker: &'a EngineTicker,
}

impl Drop for TickerGuard<'_> {
    fn drop(&mut self) {
        self.ticker.running.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Makes an engine: pooled if the address space allows it, and on demand otherwise (a limited container, a 39-bit
/// kernel).
fn engine(size: EngineSize) -> wasmtime::Result<Engine> {
    let mut config = configuration();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(size)));
    Engine::new(&config).or_else(|error| {
        tracing::warn!(%error, "no address space for pooled plugin instances; using the on-demand allocator");
        Engine::new(&configuration())
    })
}

/// Returns the settings that decide what a compiled plugin looks like. They are the same in all engines, so that one
/// compiled file serves each.
fn configuration() -> Config {
    let mut config = Config::new();
    config
        .wasm_component_model(true)
        .concurrency_support(false)
        .epoch_interruption(true)
        .memory_init_cow(true)
        .wasm_backtrace_max_frames(None)
        .generate_address_map(false)
        // A swap is compiled while calls are served: one core of it, not all.
        .parallel_compilation(false);
    config
}

fn pool(size: EngineSize) -> PoolingAllocationConfig {
    // A few more than the host ever hands out: trials at load run alongside the calls.
    let (instances, cores, memories, tables) = match size {
        EngineSize::Small => (INSTANCES_MAX as u32 + 64, 4, 1, 4),
        EngineSize::Large => (LARGE_INSTANCES_MAX as u32 + 8, 64, 8, 32),
    };
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(instances)
        .total_core_instances(instances * cores)
        .total_memories(instances * memories)
        .total_tables(instances * tables)
        .total_stacks(instances)
        .max_core_instances_per_component(cores)
        .max_memories_per_component(memories)
        .max_tables_per_component(tables)
        .table_elements(40_000)
        .max_memory_size(MEMORY_MAX)
        .max_component_instance_size(4 << 20)
        .max_core_instance_size(2 << 20)
        // A warm slot keeps the memory of the build that last used it (300 KB a swap, up to 100 of them by default):
        // enough for calls that arrive together, few enough that swaps release their memory.
        .max_unused_warm_slots(8)
        // A fresh call was measured to cost 21 µs with this and 33 µs without; a megabyte is slower again.
        .linear_memory_keep_resident(256 << 10)
        // Only pages that were written are reset, if the kernel reports them.
        .pagemap_scan(Enabled::Auto)
        .table_keep_resident(64 << 10);
    pool
}

/// The room in the pool; a higher `instances_max` is lowered to it.
pub const INSTANCES_MAX: usize = 256;
pub(crate) const LARGE_INSTANCES_MAX: usize = 32;
/// The bound on the memory of every guest, whatever is configured.
pub(crate) const MEMORY_MAX: usize = 1 << 30;

/// Moves both engines' clocks while guests run.
#[derive(Default)]
struct EngineTicker {
    running: AtomicUsize,
    asleep: AtomicBool,
    thread: OnceLock<Thread>,
}

impl EngineTicker {
    fn start(&'static self, engines: &'static EnginePair) -> anyhow::Result<()> {
        if self.thread.get().is_some() {
            return Ok(());
        }
        let handle = std::thread::Builder::new()
            .name("weir-ticker".into())
            .spawn(move || {
                // A late tick is a guest that keeps its thread for longer.
                weir_admission::run_soon();
                self.run(engines)
            })?;
        // Two starts at once leave a second ticking thread, which sees that it is not the one and ends.
        let _ = self.thread.set(handle.thread().clone());
        Ok(())
    }

    fn run(&self, engines: &EnginePair) {
        let mut idle = IDLE_TICKS;
        loop {
            std::thread::sleep(TICK);
            if self
                .thread
                .get()
                .is_some_and(|thread| thread.id() != std::thread::current().id())
            {
                return;
            }
            for made in [&engines.small, &engines.large] {
                made.get().inspect(|engine| engine.increment_epoch());
            }
            idle = if self.running.load(Ordering::SeqCst) == 0 {
                idle + 1
            } else {
                0
            };
            if idle >= IDLE_TICKS {
                self.sleep();
                idle = 0;
            }
        }
    }

    fn sleep(&self) {
        self.asleep.store(true, Ordering::SeqCst);
        // Either this sees the newcomer, or the newcomer sees `asleep` and wakes this.
        while self.asleep.load(Ordering::SeqCst) && self.running.load(Ordering::SeqCst) == 0 {
            std::thread::park();
        }
        self.asleep.store(false, Ordering::SeqCst);
    }

    fn enter(&self) {
        self.running.fetch_add(1, Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst)
            && self.asleep.swap(false, Ordering::SeqCst)
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }
}
