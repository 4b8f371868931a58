//! A server behind Weir that is called as the person who asks: each call carries its own caller's token, and nothing else does.

mod exchange;
mod kills;

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use reqwest::{Client, StatusCode, header, redirect::Policy};
use serde_json::{Value, json};
use weir_tests::{
    Admin, Gateway, House, Legacy, Modern, answer_to,
    client::{choose_tls, http, send},
    foreign,
    upstream::{Running, free_port, wait_for_port},
};

use crate::approvals::offers::{approve, plan};

/// A server that requires tokens of people, and its issuer; killed when dropped.
struct Protected {
    _running: Running,
    url: String,
    control: String,
}

impl Protected {
    fn start(era: &str, token_seconds: u32) -> Self {
        Self::start_with(era, token_seconds, None)
    }

    /// Starts them; the issuer knows a gateway on the port `gateway` by its metadata document.
    fn start_with(era: &str, token_seconds: u32, gateway: Option<u16>) -> Self {
        let (port, issuer) = (free_port(), free_port());
        let mut command = foreign::node_script_in("identity", "protected-server.mjs");
        let words = [port.to_string(), issuer.to_string(), era.to_owned()];
        command.args(words).arg(token_seconds.to_string());
        command.args(gateway.map(|port| port.to_string()));
        let running = Running::silent(&mut command, "oidc-provider");
        wait_for_port(port, "the server");
        wait_for_port(issuer, "oidc-provider");
        Self {
            _running: running,
            url: format!("http://127.0.0.1:{port}/mcp"),
            control: format!("http://127.0.0.1:{port}/control"),
        }
    }

    async fn control(&self, what: &str) -> Value {
        let answer = send(http().get(format!("{}/{what}", self.control))).await;
        serde_json::from_str(&answer.text).expect("JSON")
    }

    fn house(&self) -> House {
        House::new().own_plugins(&[]).config(&format!(
            "[upstreams.notes]\nurl = \"{}\"\nfirst = \"publish\"\nauth = {{ kind = \"oauth\" }}",
            self.url
        ))
    }

    /// Every token that the issuer gave.
    async fn tokens(&self) -> Vec<String> {
        let issued = self.control("issued").await;
        let texts = |kind: &str| issued[kind].as_array().cloned().unwrap_or_default();
        let all = [texts("access"), texts("refresh")].concat();
        let all = all
            .iter()
            .filter_map(|text| text.as_str().map(str::to_owned));
        all.collect()
    }
}

/// A person's browser: it keeps cookies, and identifies its user at the issuer.
pub(crate) struct Browser {
    client: Client,
    user: &'static str,
    cookies: Vec<(String, String)>,
    /// The address of `https://weir.test`.
    proxied: String,
}

impl Browser {
    pub(crate) fn of_user(user: &'static str) -> Self {
        choose_tls();
        // Killing a gateway closes its connections too.
        let client = Client::builder()
            .redirect(Policy::none())
            .no_proxy()
            .pool_max_idle_per_host(0);
        Self {
            client: client.build().expect("a client"),
            user,
            cookies: Vec::new(),
            proxied: String::new(),
        }
    }

    /// Opens a page, following redirects up to `stop_before`. Returns the status, the text, and where it stopped.
    pub(crate) async fn open(
        &mut self,
        method: &str,
        url: &str,
        stop_before: &str,
    ) -> (StatusCode, String, String) {
        let (mut url, mut method) = (url.to_owned(), method.to_owned());
        for _ in 0..20 {
            let (host, cookies) = self.cookies_for(&url);
            let address = url.replace("https://weir.test", &self.proxied);
            let request = match &*method {
                "POST" => self.client.post(&address),
                _ => self.client.get(&address),
            };
            let request = request
                .header(header::HOST, &host)
                .header(header::COOKIE, cookies)
                .header("x-user", self.user);
            let answer = answer_to(request).await;
            for cookie in answer.headers().get_all(header::SET_COOKIE) {
                let cookie = cookie
                    .to_str()
                    .expect("a text")
                    .split(';')
                    .next()
                    .expect("a pair");
                let name = cookie.split('=').next().expect("a name").to_owned() + "=";
                self.cookies
                    .retain(|(of, known)| *of != host || !known.starts_with(&name));
                self.cookies.push((host.clone(), cookie.to_owned()));
            }
            let status = answer.status();
            let Some(next) = answer.headers().get(header::LOCATION) else {
                return (status, answer.text().await.expect("a text"), url);
            };
            let next = next.to_str().expect("a text");
            let base = reqwest::Url::parse(&url).expect("a URL");
            let next = base.join(next).expect("a URL").to_string();
            if !stop_before.is_empty() && next.contains(stop_before) {
                return (status, String::new(), next);
            }
            (url, method) = (next, "GET".to_owned());
        }
        panic!("too many redirects");
    }

    /// Returns the host of an address, and the cookies that the browser has for it.
    fn cookies_for(&self, url: &str) -> (String, String) {
        let host = url.split('/').nth(2).expect("a host");
        let own = self.cookies.iter().filter(|(of, _)| of == host);
        let cookies: Vec<&str> = own.map(|(_, cookie)| cookie.as_str()).collect();
        (host.to_owned(), cookies.join("; "))
    }

    /// Connects an account by a link.
    async fn connect(&mut self, link: &str) {
        let (status, page, _) = self.open("GET", link, "").await;
        assert_eq!(status, StatusCode::OK, "{page}");
        assert!(page.contains("method=\"post\""), "{page}");
        let (status, page, _) = self.open("POST", link, "").await;
        assert_eq!(status, StatusCode::OK, "{page}");
        assert!(page.contains("Connected"), "{page}");
    }
}

/// Returns the link of an error that asks for an account.
fn link(result: &Value) -> String {
    assert_eq!(result["isError"], true, "{result}");
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    let at = text
        .find("http")
        .unwrap_or_else(|| panic!("no link: {result}"));
    let link = &text[at..];
    let end = link.find(|it: char| it.is_whitespace() || it == '"');
    link[..end.unwrap_or(link.len())]
        .trim_end_matches('.')
        .to_owned()
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

async fn whoami(url: &str, key: &str) -> Value {
    Modern::with_key(url, key)
        .call("notes_whoami", json!({}))
        .await
}

/// Runs a command that prints a link for a sign-in on this machine, and signs in.
async fn sign_in_for(mut command: Command, user: &'static str) -> Child {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .stdin(Stdio::null())
        .spawn()
        .expect("weir starts");
    let mut lines = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
    let link = lines.find_map(|line| {
        let line = line.expect("a line");
        line.trim()
            .starts_with("http")
            .then(|| line.trim().to_owned())
    });
    std::thread::spawn(move || lines.for_each(drop)); // a full pipe would stop it
    let link = link.expect("a link");
    let (status, page, _) = Browser::of_user(user).open("GET", &link, "").await;
    assert_eq!(status, StatusCode::OK, "{page}");
    child
}

/// Connects the gateway's own account, and serves once the tools are listed.
async fn serve(house: &House) -> Gateway {
    serve_at(house, 0).await
}

/// Serves on a port that is known beforehand, or on any if it is 0.
async fn serve_at(house: &House, port: u16) -> Gateway {
    let mut child = sign_in_for(house.weir(&["upstream", "connect", "notes"]), "operator").await;
    assert!(child.wait().expect("it ends").success());
    let listen = format!("127.0.0.1:{port}");
    let gateway =
        Gateway::start(house.weir(&["serve", "--listen", &listen, "--log-format", "json"]));
    listed(house, &gateway).await;
    gateway
}

/// Kills the gateway, and starts it again at the same address.
fn restart(house: &House, gateway: &mut Gateway) {
    let address = gateway.base.trim_start_matches("http://").to_owned();
    gateway.kill();
    let words = ["serve", "--listen", &address, "--log-format", "json"];
    *gateway = Gateway::start(house.weir(&words));
}

fn count_accounts(house: &House, owner: &str) -> usize {
    let accounts = house.json(&["upstream", "accounts", "notes"]);
    let accounts = accounts.as_array().expect("a list").iter();
    accounts.filter(|account| account["owner"] == owner).count()
}

async fn listed(house: &House, gateway: &Gateway) {
    let key = house.key(&["--agent", "lister"]);
    for _ in 0..600 {
        let (tools, _) = Modern::with_key(gateway.url(), &key).list().await;
        if !tools.is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("nothing is listed:\n{}", gateway.log());
}

/// Returns the files below a folder that hold a text.
fn holders(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(holders(&path, text));
        } else {
            let bytes = fs::read(&path).unwrap_or_default();
            let mut windows = bytes.windows(text.len());
            if windows.any(|window| window == text.as_bytes()) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

/// Calls a tool that needs an account, and returns the question for it.
async fn ask_for_account(client: &Modern) -> Value {
    let call = json!({ "name": "notes_whoami", "arguments": {} });
    let answer = client.ask("tools/call", call).await;
    let result = answer.result();
    assert_eq!(result["resultType"], "input_required", "{result}");
    result.clone()
}

/// Goes on with the call that asked for the account of bob, which is connected by now.
async fn resume_as_bob(client: &Modern, question: &Value) {
    let call = json!({
        "name": "notes_whoami", "arguments": {}, "requestState": question["requestState"],
        "inputResponses": { "account": { "action": "accept" } },
    });
    let answer = client.ask("tools/call", call).await;
    assert!(
        text(answer.result()).contains("you are bob"),
        "{}",
        answer.text
    );
}

/// Connects the account of bob by a question: a client that opens links is given one, and another one a form with the link in
/// its text.
async fn connect_by_questions(house: &House, url: &str, key: &str) {
    for (able, mode) in [
        (json!({ "elicitation": { "url": {} } }), "url"),
        (json!({ "elicitation": {} }), "form"),
    ] {
        let client = Modern::with_key(url, key).saying(able);
        let result = ask_for_account(&client).await;
        let params = &result["inputRequests"]["account"]["params"];
        assert_eq!(params["mode"], mode, "{result}");
        let words = if mode == "url" {
            &params["url"]
        } else {
            &params["message"]
        };
        let words = words.as_str().expect("a text");
        let link = &words[words.find("http").expect("a link")..];
        Browser::of_user("bob").connect(link).await;
        resume_as_bob(&client, &result).await;
        if mode == "url" {
            disconnect(house, "agent bob");
        }
    }
}

/// Looks for every token that the issuer gave in the files of the house, and returns the tokens.
async fn find_no_token(server: &Protected, house: &House) -> Vec<String> {
    let tokens = server.tokens().await;
    assert!(!tokens.is_empty());
    for token in &tokens {
        assert_eq!(holders(house.path(), token), Vec::<String>::new());
    }
    tokens
}

/// Looks for the tokens also in what the gateway prints.
async fn find_no_token_anywhere(server: &Protected, house: &House, gateway: &Gateway) {
    let tokens = find_no_token(server, house).await;
    assert!(tokens.len() >= 6, "{tokens:?}");
    let trail = house.run(&["audit", "export", "--format", "jsonl"]).1;
    let metrics = gateway.metrics().await;
    let accounts = house.run(&["upstream", "accounts", "notes"]).1;
    let show = house.run(&["upstream", "show", "notes"]).1;
    assert!(trail.contains("account_connect") && trail.contains("account_disconnect"));
    assert!(
        metrics.contains("weir_upstream_account_events_total"),
        "{metrics}"
    );
    for token in &tokens {
        for shown in [&gateway.log(), &trail, &metrics, &show, &accounts] {
            assert!(!shown.contains(token.as_str()), "{shown}");
        }
    }
}

#[tokio::test]
async fn each_call_bears_its_own_callers_token() {
    for era in ["legacy", "modern"] {
        let server = Protected::start(era, 600);
        let house = server.house();
        let gateway = serve(&house).await;
        let url = gateway.url();
        let (ann, bob) = (
            house.key(&["--agent", "ann"]),
            house.key(&["--agent", "bob"]),
        );

        // Who cannot be asked gets the link in an error.
        let asked = link(&whoami(&url, &ann).await);
        assert!(
            asked.starts_with(&format!("{}/connect/notes?ticket=", gateway.base)),
            "{asked}"
        );
        let mut browser = Browser::of_user("ann");
        browser.connect(&asked).await;
        assert!(
            text(&whoami(&url, &ann).await).contains("you are ann"),
            "{era}"
        );
        let again = browser.open("GET", &asked, "").await;
        assert_eq!(again.0, StatusCode::NOT_FOUND, "a link opens once");

        connect_by_questions(&house, &url, &bob).await;
        let (_, accounts, _) = house.run(&["upstream", "accounts", "notes"]);
        for owner in ["gateway", "agent ann", "agent bob"] {
            assert!(accounts.contains(owner), "{accounts}");
        }

        // Many calls at once, over both eras of the agents.
        let legacy = Legacy::open_as(&url, "2025-06-18", Some(&bob)).await;
        let calls = (0..10).map(|_| async {
            let (one, other) = tokio::join!(whoami(&url, &ann), whoami(&url, &bob));
            (one, other)
        });
        for (one, other) in futures::future::join_all(calls).await {
            assert!(text(&one).contains("you are ann") && text(&other).contains("you are bob"));
        }
        let legacy = legacy.call("notes_whoami", json!({})).await;
        assert!(text(&legacy).contains("you are bob"), "{legacy}");
        let seen = server.control("calls").await;
        for call in seen["calls"].as_array().expect("calls") {
            let session = call["session"].as_str();
            let user = call["user"].as_str().expect("a user");
            assert_eq!(session.is_none(), era == "modern");
            assert!(
                session.is_none_or(|session| session.ends_with(user)),
                "{call}"
            );
            // The answer to the gateway's own question, with which bob continued, was only for the gateway.
            let params = call["params"].as_array().expect("names");
            let answers = ["inputResponses", "requestState"];
            assert!(
                !params
                    .iter()
                    .any(|name| answers.iter().any(|answer| name == answer)),
                "{call}"
            );
        }

        // After a revocation at the issuer, only that caller is asked to sign in again.
        server.control("revoke?user=ann").await;
        link(&whoami(&url, &ann).await);
        assert!(text(&whoami(&url, &bob).await).contains("you are bob"));

        find_no_token_anywhere(&server, &house, &gateway).await;
        let answer = whoami(&url, &bob).await;
        assert!(text(&answer).contains("by ***"), "{answer}");
    }
}

fn disconnect(house: &House, owner: &str) {
    let accounts = house.json(&["upstream", "accounts", "notes"]);
    let accounts = accounts.as_array().expect("a list");
    let account = accounts.iter().find(|account| account["owner"] == owner);
    let number = account.expect("the account")["number"].to_string();
    house.succeed(&["upstream", "disconnect", "notes", &number]);
}

/// A link is for one caller and one browser: a changed link, or another browser, connects nothing.
#[tokio::test]
async fn a_sign_in_ends_in_the_browser_that_began_it() {
    let server = Protected::start("modern", 600);
    let house = server.house();
    let gateway = serve(&house).await;
    let url = gateway.url();
    let key = house.key(&["--agent", "ann"]);
    let asked = link(&whoami(&url, &key).await);
    for wrong in [
        asked.replace("notes", "other"),
        format!("{asked}0"),
        asked[..asked.len() - 1].to_owned(),
    ] {
        let (status, ..) = Browser::of_user("eve").open("GET", &wrong, "").await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{wrong}");
    }
    let mut browser = Browser::of_user("ann");
    let (_, _, back) = browser.open("POST", &asked, "/callback").await;
    assert!(back.contains("code=") && back.contains("iss="), "{back}");
    // Another browser, another issuer, another state.
    let (status, ..) = Browser::of_user("eve").open("GET", &back, "").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let (status, ..) = browser
        .open("GET", &back.replace("state=", "state=x"), "")
        .await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    link(&whoami(&url, &key).await);
    let (status, page, _) = browser.open("GET", &back, "").await;
    assert_eq!(status, StatusCode::OK, "{page}");
    let (status, ..) = browser.open("GET", &back, "").await;
    assert_eq!(status, StatusCode::NOT_FOUND, "a sign-in ends once");
    assert!(text(&whoami(&url, &key).await).contains("you are ann"));

    let asked = link(&whoami(&url, &house.key(&["--agent", "bob"])).await);
    let (_, _, back) = Browser::of_user("bob")
        .open("POST", &asked, "/callback")
        .await;
    let other =
        back.split("iss=").next().expect("a part").to_owned() + "iss=https%3A%2F%2Fevil.example";
    let (status, ..) = Browser::of_user("bob").open("GET", &other, "").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let page = send(http().get(&asked)).await;
    assert_eq!(page.headers["cache-control"], "no-store");
    let own = format!("{}/connect/notes/client.json", gateway.base);
    let document = send(http().get(&own)).await;
    let document: Value = serde_json::from_str(&document.text).expect("JSON");
    assert_eq!(document["client_id"], own);
    let back = format!("{}/connect/notes/callback", gateway.base);
    assert_eq!(document["redirect_uris"], json!([back]));
    let rebound = http().get(&asked).header("host", "evil.example");
    assert_eq!(send(rebound).await.status, StatusCode::FORBIDDEN);
}

/// Tokens that end are renewed by one request, however many calls need them; an answer that is lost does not lose the account.
#[tokio::test]
async fn a_token_is_renewed_once_for_all_who_need_it() {
    let server = Protected::start("modern", 8);
    let house = server.house();
    let gateway = serve(&house).await;
    let (url, key) = (gateway.url(), house.key(&["--agent", "ann"]));
    let asked = link(&whoami(&url, &key).await);
    Browser::of_user("ann").connect(&asked).await;
    tokio::time::sleep(Duration::from_secs(7)).await;
    let before = server.control("calls").await["renewals"].clone();
    let calls = (0..8).map(|_| whoami(&url, &key));
    for result in futures::future::join_all(calls).await {
        assert!(text(&result).contains("you are ann"), "{result}");
    }
    let after = server.control("calls").await["renewals"].clone();
    let own = after.as_u64().expect("a number") - before.as_u64().expect("a number");
    // The lookout may have renewed its own meanwhile.
    assert!((1..=2).contains(&own), "{own}");
    tokio::time::sleep(Duration::from_secs(9)).await;
    server.control("set?lose=4").await;
    let failed = whoami(&url, &key).await;
    assert_eq!(failed["isError"], true, "{failed}");
    assert!(
        !text(&failed).contains("/connect/"),
        "the account is kept: {failed}"
    );
    server.control("set?lose=0").await;
    assert!(text(&whoami(&url, &key).await).contains("you are ann"));
}

/// A server that requires people to sign in is added in one step, and a failed attempt leaves no account behind.
#[tokio::test]
async fn a_server_that_wants_a_sign_in_is_added_at_once() {
    let server = Protected::start("legacy", 600);
    let house = House::new().own_plugins(&[]);
    for (agrees, expected) in [(false, 1), (true, 0)] {
        let mut words = vec!["upstream", "add", "notes", &*server.url];
        words.extend(agrees.then_some("--yes"));
        let mut child = sign_in_for(house.weir(&words), "operator").await;
        let code = child.wait().expect("it ends").code();
        assert_eq!(code, Some(expected));
    }
    let written = fs::read_to_string(house.path().join("weir.toml")).expect("it is there");
    assert!(written.contains("auth = { kind = \"oauth\" }"), "{written}");
    let gateway = house.serve_as_it_is();
    listed(&house, &gateway).await;
    let accounts = house.json(&["upstream", "accounts", "notes"]);
    assert_eq!(accounts.as_array().map(Vec::len), Some(1), "{accounts}");
}

/// A call that needs more than its account may is answered with a link, and what its caller allows there is added to what it
/// allowed before.
#[tokio::test]
async fn a_call_that_needs_more_scopes_asks_for_all_of_them() {
    for era in ["legacy", "modern"] {
        let server = Protected::start(era, 600);
        let house = server.house();
        let gateway = serve(&house).await;
        let url = gateway.url();
        let ann = house.key(&["--agent", "ann"]);
        let mut browser = Browser::of_user("ann");
        browser.connect(&link(&whoami(&url, &ann).await)).await;
        assert!(text(&whoami(&url, &ann).await).contains("you are ann"));
        for needed in ["notes:write", "notes:share"] {
            server.control(&format!("needs?scope={needed}")).await;
            let refused = whoami(&url, &ann).await;
            assert!(text(&refused).contains(needed), "{era}: {refused}");
            assert_eq!(
                refused["structuredContent"]["reason"], "account_needed",
                "{refused}"
            );
            browser.connect(&link(&refused)).await;
            let answer = whoami(&url, &ann).await;
            assert!(text(&answer).contains("you are ann"), "{era}: {answer}");
        }
        let seen = server.control("calls").await;
        let calls = seen["calls"].as_array().expect("calls");
        let scope = calls.last().expect("a call")["scope"].as_str();
        let scope = scope.expect("a scope");
        for wanted in ["notes", "notes:write", "notes:share"] {
            assert!(scope.split(' ').any(|it| it == wanted), "{era}: {scope}");
        }
        assert_eq!(calls.len(), 3, "what was refused did nothing: {calls:?}");
        let shown = house.json(&["upstream", "list"]);
        assert_eq!(shown["upstreams"][0]["auth"], "oauth", "{shown}");
    }
}

/// A call that ends with the question for an account has sent nothing: the approval that it had is good for the same call.
#[tokio::test]
async fn an_approval_outlives_the_question_for_an_account() {
    let server = Protected::start("modern", 600);
    let overlay = "contract: notes\nupstream: notes\ntake: [whoami, sign]\n\
                   tools:\n  - { from: sign, approval: required }\n";
    let house = server
        .house()
        .config("overlay = \"notes.yaml\"")
        .file("notes.yaml", overlay);
    let gateway = serve(&house).await;
    let admin = Admin::of(&house);
    let client = Modern::with_key(gateway.url(), &house.key(&["--agent", "ann"]));
    let sign = async || client.call("notes_sign", json!({})).await;
    let id = plan(&sign().await);
    approve(&admin, &id).await;
    let asked = sign().await;
    assert_eq!(
        asked["structuredContent"]["reason"], "account_needed",
        "{asked}"
    );
    Browser::of_user("ann").connect(&link(&asked)).await;
    let signed = sign().await;
    assert!(text(&signed).contains("you are ann"), "{signed}");
    assert_ne!(plan(&sign().await), id, "it is used up");
}

/// The issuer reads the document itself, checks it by the draft of the standard, and accepts the gateway as the
/// client that it describes.
#[tokio::test]
async fn an_issuer_knows_the_gateway_by_its_document() {
    let port = free_port();
    let server = Protected::start_with("modern", 600, Some(port));
    let house = House::new().own_plugins(&[]).config(&format!(
        "[http]\npublic_url = \"https://weir.test\"\n[upstreams.notes]\nurl = \"{}\"\n\
         first = \"publish\"\nauth = {{ kind = \"oauth\" }}",
        server.url
    ));
    let gateway = serve_at(&house, port).await;
    let ann = house.key(&["--agent", "ann"]);
    let link = link(&whoami(&gateway.url(), &ann).await);
    assert!(
        link.starts_with("https://weir.test/connect/notes?"),
        "{link}"
    );
    let mut browser = Browser {
        proxied: gateway.base.clone(),
        ..Browser::of_user("ann")
    };
    browser.connect(&link).await;
    let result = whoami(&gateway.url(), &ann).await;
    assert!(text(&result).contains("you are ann"), "{result}");
    let issued = server.control("issued").await;
    let document = "https://weir.test/connect/notes/client.json";
    let clients = issued["clients"].as_array().expect("a list");
    assert!(clients.iter().any(|client| client == document), "{issued}");
}

/// The address of a server may hold a secret. It is in the configuration, and not in the state.
#[tokio::test]
async fn an_address_with_a_secret_is_not_kept_with_an_account() {
    const SECRET: &str = "planted-in-the-address-5c07";
    let server = Protected::start("modern", 600);
    let house = House::new().own_plugins(&[]).config(&format!(
        "[upstreams.notes]\nurl = \"{}?key={SECRET}\"\nfirst = \"publish\"\n\
         auth = {{ kind = \"oauth\", resource = \"{}\" }}",
        server.url, server.url
    ));
    let gateway = serve(&house).await;
    let url = gateway.url();
    let ann = house.key(&["--agent", "ann"]);
    Browser::of_user("ann")
        .connect(&link(&whoami(&url, &ann).await))
        .await;
    assert!(text(&whoami(&url, &ann).await).contains("you are ann"));
    let found = holders(&house.path().join("state"), SECRET);
    assert!(found.is_empty(), "{found:?}");
    assert!(!gateway.log().contains(SECRET));
}
