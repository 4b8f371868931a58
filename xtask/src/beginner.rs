//! `cargo xtask beginner [LANGUAGE…]`: the first minutes of a plugin's author, from empty caches, timed step by step.

use std::{
    env, fs,
    io::{BufRead as _, BufReader},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::{
    clients,
    step::{StepFailure, capture_output},
    workshop::XtaskContext,
};

const LANGUAGES: [&str; 4] = ["rust", "js", "python", "c"];
const CALL: [&str; 5] = ["deploy", "--environment", "prod", "--service", "web"];
const ANSWER: &str = r#"{"environment":"prod","service":"web","version":"latest"}"#;
/// The time for everything that does not compile.
const REST_MAX: Duration = Duration::from_secs(120);

pub(crate) fn run(workshop: &XtaskContext, words: &[&str]) -> Result<(), StepFailure> {
    if let Some(unknown) = words.iter().find(|word| !LANGUAGES.contains(word)) {
        return Err(format!(
            "`{unknown}` is not a language; there are {}",
            LANGUAGES.join(", ")
        )
        .into());
    }
    clients::node(workshop)?;
    workshop.steps.command(
        "build weir",
        &mut workshop.cargo(&["build", "--workspace", "--bins"]),
    )?;
    let mut slow = Vec::new();
    for language in LANGUAGES
        .into_iter()
        .filter(|language| words.is_empty() || words.contains(language))
    {
        let desk = BeginnerSandbox::new(workshop, language)?;
        let steps = desk.steps();
        let _ = fs::remove_dir_all(&desk.folder);
        let rest: Duration = steps?
            .iter()
            .filter(|step| !step.compiles)
            .map(|step| step.took)
            .sum();
        println!(
            "{language}: {:.1} s besides compiling\n",
            rest.as_secs_f64()
        );
        if rest > REST_MAX {
            slow.push(language);
        }
    }
    if slow.is_empty() {
        Ok(())
    } else {
        Err(format!("over two minutes besides compiling: {}", slow.join(", ")).into())
    }
}

/// A folder with the plugin and every cache in it, and the program that is tried.
struct BeginnerSandbox {
    weir: PathBuf,
    folder: PathBuf,
    language: &'static str,
    path: std::ffi::OsString,
}

struct BeginnerStep {
    took: Duration,
    compiles: bool,
}

impl BeginnerStep {
    /// Shows a step when it is over.
    fn done(name: &str, since: Instant, compiles: bool) -> Self {
        let took = since.elapsed();
        println!("{:>7.1}s {name}", took.as_secs_f64());
        Self { took, compiles }
    }
}

impl BeginnerSandbox {
    fn new(workshop: &XtaskContext, language: &'static str) -> Result<Self, StepFailure> {
        let folder =
            env::temp_dir().join(format!("weir-beginner-{}-{language}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let io =
            |error: std::io::Error| StepFailure::from(format!("{}: {error}", folder.display()));
        fs::create_dir_all(folder.join("cargo")).map_err(io)?;
        // The machine decides where crates come from; earlier downloads are not there.
        let home = env::var_os("CARGO_HOME").map(PathBuf::from);
        let home = home.or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")));
        for name in ["config.toml", "credentials.toml"] {
            if let Some(file) = home
                .as_ref()
                .map(|home| home.join(name))
                .filter(|file| file.exists())
            {
                fs::copy(file, folder.join("cargo").join(name)).map_err(io)?;
            }
        }
        let path = env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(clients::node(workshop)?).chain(env::split_paths(&path));
        let path = env::join_paths(folders).map_err(|error| format!("PATH: {error}"))?;
        Ok(Self {
            weir: workshop.binary("weir"),
            folder,
            language,
            path,
        })
    }

    fn weir(&self, inside: &str, words: &[&str]) -> Command {
        let mut command = Command::new(&self.weir);
        for (name, _) in env::vars_os() {
            let name = name.to_string_lossy();
            if ["WEIR_", "CARGO_", "RUSTFLAGS"]
                .iter()
                .any(|own| name.starts_with(own))
            {
                command.env_remove(name.as_ref());
            }
        }
        command
            .args(words)
            .current_dir(self.folder.join(inside))
            .stdin(Stdio::null())
            .env("PATH", &self.path);
        command
            .env("CARGO_HOME", self.folder.join("cargo"))
            .env("npm_config_cache", self.folder.join("npm"));
        command
            .env("PIP_NO_CACHE_DIR", "1")
            .env("XDG_CACHE_HOME", self.folder.join("cache"));
        command
    }

    fn steps(&self) -> Result<Vec<BeginnerStep>, StepFailure> {
        println!("{}:", self.language);
        let (mut steps, mut since) = (Vec::new(), Instant::now());
        capture_output(&mut self.weir(
            "",
            &[
                "plugin",
                "new",
                "d",
                "--kind",
                "tools",
                "--lang",
                self.language,
            ],
        ))?;
        steps.push(BeginnerStep::done("weir plugin new", since, false));
        steps.extend(self.build()?);
        since = Instant::now();
        capture_output(&mut self.weir("d", &["plugin", "check"]))?;
        // It builds a second time.
        steps.push(BeginnerStep::done("weir plugin check", since, true));
        since = Instant::now();
        capture_output(&mut self.weir("d", &["plugin", "check", "--once"]))?;
        steps.push(BeginnerStep::done("weir plugin check --once", since, false));
        since = Instant::now();
        self.answers(&["call"])?;
        steps.push(BeginnerStep::done("weir call deploy", since, false));
        since = Instant::now();
        let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = port
            .map_err(|error| format!("no free port: {error}"))?
            .to_string();
        let _gateway = self.serve(&address)?;
        self.answers(&["call", "--url", &format!("http://{address}/mcp")])?;
        steps.push(BeginnerStep::done(
            "weir serve, and weir call --url",
            since,
            false,
        ));
        Ok(steps)
    }

    /// Times each command that the build shows. What fetches and what compiles are one where the language's tool does
    /// both; then it counts as compiling.
    fn build(&self) -> Result<Vec<BeginnerStep>, StepFailure> {
        let mut command = self.weir("d", &["plugin", "build"]);
        let started = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn();
        let mut child = started.map_err(|error| format!("weir does not start: {error}"))?;
        let (mut steps, mut output) = (Vec::new(), String::new());
        let mut running: Option<(String, Instant)> = None;
        let over = |running: Option<(String, Instant)>, steps: &mut Vec<BeginnerStep>| {
            if let Some((name, since)) = running {
                steps.push(BeginnerStep::done(&name, since, !is_installing(&name)));
            }
        };
        for line in BufReader::new(child.stderr.take().expect("it is piped"))
            .lines()
            .map_while(Result::ok)
        {
            if let Some(shown) = line.strip_prefix("$ ") {
                let program = |word: &str| word.rsplit('/').next().unwrap_or(word).to_owned();
                let words = shown
                    .split(' ')
                    .filter(|word| !word.contains('='))
                    .map(program)
                    .take(4);
                over(running.take(), &mut steps);
                running = Some((
                    format!("  {}", words.collect::<Vec<_>>().join(" ")),
                    Instant::now(),
                ));
            }
            output.push_str(&line);
            output.push('\n');
        }
        over(running, &mut steps);
        let status = child
            .wait()
            .map_err(|error| format!("weir plugin build: {error}"))?;
        if status.success() {
            Ok(steps)
        } else {
            Err(format!("weir plugin build ended with {status}\n{output}").into())
        }
    }

    fn answers(&self, words: &[&str]) -> Result<(), StepFailure> {
        let answer = capture_output(&mut self.weir("d", &[words, &CALL].concat()))?;
        if answer.trim_end() == ANSWER {
            Ok(())
        } else {
            Err(format!("{words:?} answered {answer}").into())
        }
    }

    fn serve(&self, address: &str) -> Result<BeginnerGateway, StepFailure> {
        let mut command = self.weir("d", &["serve", "--listen", address]);
        let started = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn();
        let mut child = started.map_err(|error| format!("weir does not start: {error}"))?;
        let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        let gateway = BeginnerGateway(child);
        let listens = lines
            .by_ref()
            .map_while(Result::ok)
            .any(|line| line.contains("listening on http://"));
        // Its later output is ignored; its pipe remains open.
        std::thread::spawn(move || lines.for_each(drop));
        if listens {
            Ok(gateway)
        } else {
            Err("weir serve does not listen".into())
        }
    }
}

/// Returns `true` for a command that fetches and installs, and compiles nothing.
fn is_installing(shown: &str) -> bool {
    ["npm install", "-m venv", "-m pip"]
        .iter()
        .any(|words| shown.contains(words))
}

/// A gateway that ends with its step.
struct BeginnerGateway(Child);

impl Drop for BeginnerGateway {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
