//! The official SDKs, each with a server of the same tools, and the ways in which it is served.

use std::process::Command;

use weir_tests::{
    foreign, place,
    upstream::{Running, free_port, wait_for_port},
};

pub(super) struct Sdk {
    pub(super) title: &'static str,
    /// Returns the words that start its server, followed by the way in which it is to serve.
    words: fn() -> Vec<String>,
    /// The ways in which it does not serve, each with what Weir finds and what the documentation states.
    pub(super) exceptions: &'static [Exception],
}

pub(super) struct Exception {
    pub(super) way: &'static str,
    pub(super) found: &'static str,
    pub(super) because: &'static str,
}

/// A way from Weir to a server.
pub(super) struct Way {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) era: &'static str,
    /// The word that selects this way for a server.
    pub(super) serve: &'static str,
}

pub(super) const WAYS: [Way; 5] = [
    Way {
        name: "stdio-legacy",
        title: "stdio, legacy",
        era: "legacy",
        serve: "stdio",
    },
    Way {
        name: "stdio-modern",
        title: "stdio, modern",
        era: "modern",
        serve: "stdio",
    },
    Way {
        name: "http-legacy",
        title: "HTTP, legacy",
        era: "legacy",
        serve: "http",
    },
    Way {
        name: "http-modern",
        title: "HTTP, modern",
        era: "modern",
        serve: "http",
    },
    Way {
        name: "sse",
        title: "HTTP+SSE",
        era: "legacy",
        serve: "sse",
    },
];

const NO_MODERN_ERA: [Exception; 2] = [
    Exception {
        way: "stdio-modern",
        found: "only revisions with `initialize`",
        because: "it has no modern era",
    },
    Exception {
        way: "http-modern",
        found: "only revisions with `initialize`",
        because: "it has no modern era",
    },
];
const NO_SSE: [Exception; 1] = [Exception {
    way: "sse",
    found: "400 Bad Request and no stream",
    because: "it has no server of HTTP+SSE",
}];

pub(super) const TYPESCRIPT_1: Sdk = Sdk {
    title: "TypeScript 1.x",
    words: || node("typescript1_server.mjs"),
    exceptions: &NO_MODERN_ERA,
};
pub(super) const TYPESCRIPT_2: Sdk = Sdk {
    title: "TypeScript 2.x",
    words: || node("typescript2_server.mjs"),
    exceptions: &NO_SSE,
};
pub(super) const PYTHON_1: Sdk = Sdk {
    title: "Python 1.x",
    words: || python("python-mcp1", "python1_server.py"),
    exceptions: &NO_MODERN_ERA,
};
pub(super) const PYTHON_2: Sdk = Sdk {
    title: "Python 2.x",
    words: || python("python-current", "python2_server.py"),
    exceptions: &[],
};
pub(super) const RMCP: Sdk = Sdk {
    title: "Rust (rmcp)",
    words: || vec![place::binary("sdk-rmcp").display().to_string()],
    exceptions: &NO_SSE,
};
pub(super) const ALL: [&Sdk; 5] = [&TYPESCRIPT_1, &TYPESCRIPT_2, &PYTHON_1, &PYTHON_2, &RMCP];

impl Sdk {
    pub(super) fn exception(&self, way: &Way) -> Option<&'static Exception> {
        self.exceptions
            .iter()
            .find(|exception| exception.way == way.name)
    }

    /// Starts a server on a port. An SDK without such a server is tried at its HTTP port, where it would answer if it had
    /// one.
    pub(super) fn start(&self) -> Ports {
        let start = |serve: &'static str| {
            let port = free_port();
            let words = (self.words)();
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]).args([serve, &port.to_string()]);
            (port, Running::start(&mut command, self.title))
        };
        let serves_sse = WAYS
            .iter()
            .any(|way| way.name == "sse" && self.exception(way).is_none());
        let http = start("http");
        let sse = serves_sse.then(|| start("sse"));
        wait_for_port(http.0, self.title);
        if let Some((port, _)) = &sse {
            wait_for_port(*port, self.title);
        }
        Ports { http, sse }
    }

    /// Returns the configuration entry for one way; `more` are further keys.
    pub(super) fn entry(&self, way: &Way, ports: &Ports, more: &str) -> String {
        let (name, era) = (way.name, way.era);
        let place = match way.serve {
            "stdio" => format!(
                "command = {:?}",
                [(self.words)(), vec!["stdio".to_owned()]].concat()
            ),
            "http" => format!(
                "url = \"http://127.0.0.1:{}/mcp\"\ntransport = \"http\"",
                ports.http.0
            ),
            _ => match &ports.sse {
                Some((port, _)) => {
                    format!("url = \"http://127.0.0.1:{port}/sse\"\ntransport = \"sse\"")
                }
                None => format!(
                    "url = \"http://127.0.0.1:{}/mcp\"\ntransport = \"sse\"",
                    ports.http.0
                ),
            },
        };
        format!("[upstreams.{name}]\n{place}\nera = \"{era}\"\nfirst = \"publish\"\n{more}")
    }
}

/// The servers of one SDK that listen on a port.
pub(super) struct Ports {
    http: (u16, Running),
    sse: Option<(u16, Running)>,
}

fn node(script: &str) -> Vec<String> {
    let script = foreign::beside_packages(
        "node",
        &place::repository().join("tests/upstreams/sdk").join(script),
    );
    vec![program(&foreign::node()), script.display().to_string()]
}

fn python(environment: &str, script: &str) -> Vec<String> {
    let script = place::repository().join("tests/upstreams/sdk").join(script);
    vec![
        program(&foreign::python(environment)),
        script.display().to_string(),
    ]
}

fn program(command: &Command) -> String {
    command
        .get_program()
        .to_str()
        .expect("paths of tests are UTF-8")
        .to_owned()
}
