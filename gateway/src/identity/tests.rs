//! Keys and the access that they give.

use super::*;

fn row(minted: &MintedSecret, agent: &str) -> KeyRow {
    KeyRow {
        id: minted.id.clone(),
        secret_hash: minted.hash.to_vec(),
        agent: agent.into(),
        tenant: "acme".into(),
        access: None,
        view: None,
        limits: None,
        created_ms: 1,
        created_by: "test".into(),
        expires_ms: None,
        revoked_ms: None,
        change: 0,
    }
}

/// Returns identities with these rows, in the order of their changes.
fn identities(rows: &[KeyRow], required: bool) -> IdentityRegistry {
    let identities = IdentityRegistry::new(required);
    change(&identities, rows);
    identities
}

/// Applies changes that another process made later.
fn change(identities: &IdentityRegistry, rows: &[KeyRow]) {
    let numbered = rows.iter().zip(identities.seen() + 1..);
    let rows: Vec<KeyRow> = numbered
        .map(|(row, change)| KeyRow {
            change,
            ..row.clone()
        })
        .collect();
    identities.apply(&rows);
}

fn minted() -> MintedSecret {
    MintedSecret::new(SecretKind::Agent).expect("random numbers")
}

#[test]
fn without_keys_everyone_is_local_unless_keys_are_required() {
    let open = identities(&[], false);
    assert_eq!(
        open.resolve(RequestCredential::None),
        Ok(CallerIdentity::local())
    );
    let closed = identities(&[], true);
    assert_eq!(
        closed.resolve(RequestCredential::None),
        Err(AuthenticationError::Missing)
    );
}

#[test]
fn a_key_resolves_to_its_agent_and_nothing_else_does() {
    let (key, other) = (minted(), minted());
    let keys = identities(&[row(&key, "ann")], false);
    let resolve = |text: &str| keys.resolve(RequestCredential::Key(text));
    let caller = resolve(&key.text).expect("known");
    assert_eq!((&*caller.agent, &*caller.tenant), ("ann", "acme"));
    assert_eq!(resolve(&other.text), Err(AuthenticationError::Unknown));
    let swapped = format!(
        "{}{}",
        &key.text[..key.text.len() - 64],
        &other.text[other.text.len() - 64..]
    );
    assert_eq!(
        resolve(&swapped),
        Err(AuthenticationError::Unknown),
        "the id of one, the secret of another"
    );
    for bad in [
        "",
        "weir_",
        "weir__",
        &key.text.to_uppercase(),
        &key.text[1..],
        &format!("{}0", key.text),
    ] {
        assert_eq!(resolve(bad), Err(AuthenticationError::Malformed), "{bad}");
    }
    assert_eq!(
        keys.resolve(RequestCredential::None),
        Err(AuthenticationError::Missing)
    );
}

#[test]
fn revoking_and_expiring_close_at_once_and_never_open_to_everyone() {
    let (key, old) = (minted(), minted());
    let keys = identities(
        &[
            row(&key, "ann"),
            KeyRow {
                expires_ms: Some(1),
                ..row(&old, "bob")
            },
        ],
        false,
    );
    assert_eq!(
        keys.resolve(RequestCredential::Key(&old.text)),
        Err(AuthenticationError::Expired)
    );
    let caller = keys
        .resolve(RequestCredential::Key(&key.text))
        .expect("known");
    change(&keys, &[row(&key, "ann")]);
    assert!(
        !caller.revoked().is_cancelled(),
        "an unchanged key keeps what it has open"
    );
    change(
        &keys,
        &[KeyRow {
            revoked_ms: Some(1),
            ..row(&key, "ann")
        }],
    );
    assert!(caller.revoked().is_cancelled());
    assert_eq!(
        keys.resolve(RequestCredential::Key(&key.text)),
        Err(AuthenticationError::Revoked)
    );
    assert_eq!(
        keys.resolve(RequestCredential::None),
        Err(AuthenticationError::Missing),
        "the last key gone opens nothing"
    );
}

#[test]
fn a_header_is_one_bearer_or_nothing() {
    fn credential<'a>(values: &[&'a str]) -> RequestCredential<'a> {
        RequestCredential::of_header(values.iter().map(|value| value.as_bytes()))
    }
    assert!(matches!(credential(&[]), RequestCredential::None));
    assert!(matches!(
        credential(&["Bearer abc"]),
        RequestCredential::Key("abc")
    ));
    assert!(matches!(
        credential(&["bEARER  abc "]),
        RequestCredential::Key("abc")
    ));
    for bad in [
        &["Basic abc"] as &[&str],
        &["Bearer a", "Bearer b"],
        &["Bearer"],
        &[""],
        &["é"],
    ] {
        assert!(
            matches!(credential(bad), RequestCredential::Malformed),
            "{bad:?}"
        );
    }
}

#[test]
fn an_access_list_that_cannot_be_read_allows_nothing() {
    let key = minted();
    let access = |text: &str| {
        let keys = identities(
            &[KeyRow {
                access: Some(text.into()),
                ..row(&key, "ann")
            }],
            false,
        );
        keys.resolve(RequestCredential::Key(&key.text))
            .expect("known")
            .access()
            .clone()
    };
    assert!(!access("{\"contarcts\":[\"desk\"]}").allows("desk", "list"));
    let some = access(r#"{"contracts":["desk"],"tools":["find_part"]}"#);
    assert!(
        some.allows("desk", "anything")
            && some.allows("depot", "find_part")
            && !some.allows("depot", "x")
    );
}

/// A slower reader applies what it read before the key was revoked.
#[test]
fn an_older_reading_never_undoes_a_revocation() {
    let key = minted();
    let keys = IdentityRegistry::new(false);
    let added = KeyRow {
        change: 1,
        ..row(&key, "ann")
    };
    keys.apply(&[KeyRow {
        change: 2,
        revoked_ms: Some(1),
        ..row(&key, "ann")
    }]);
    keys.apply(&[added]);
    assert_eq!(
        keys.resolve(RequestCredential::Key(&key.text)),
        Err(AuthenticationError::Revoked)
    );
    assert_eq!(keys.seen(), 2);
}

/// A key with a different access is a different key. The end of a revoked key reaches all tasks that wait for it, in any order.
#[test]
fn who_waits_for_the_end_of_a_key_hears_of_it() {
    let key = minted();
    let keys = identities(&[row(&key, "ann")], false);
    let caller = keys
        .resolve(RequestCredential::Key(&key.text))
        .expect("known");
    let waiting = caller.revoked();
    change(
        &keys,
        &[KeyRow {
            access: Some(r#"{"tools":["a"]}"#.into()),
            ..row(&key, "ann")
        }],
    );
    assert!(waiting.is_cancelled(), "the old access ended");
    let narrow = keys
        .resolve(RequestCredential::Key(&key.text))
        .expect("known");
    assert!(!narrow.revoked().is_cancelled());
    change(
        &keys,
        &[KeyRow {
            revoked_ms: Some(1),
            access: Some(r#"{"tools":["a"]}"#.into()),
            ..row(&key, "ann")
        }],
    );
    assert!(
        narrow.revoked().is_cancelled(),
        "it was revoked before this was asked"
    );
}

/// There are a million keys: each takes at most 300 bytes, as the benchmark row `scale` measures it in the program. Pages of
/// the program itself do not count, since how many of them are resident differs from run to run. Allocations of other tests would
/// count as well, so the test runs again in a separate process.
#[test]
fn a_key_is_small() {
    const MANY: usize = 200_000;
    const ALONE: &str = "WEIR_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let mut alone = std::process::Command::new(std::env::current_exe().expect("this program"));
        let output = alone
            .args(["--exact", "identity::tests::a_key_is_small"])
            .env(ALONE, "1")
            .output();
        let output = output.expect("it starts once more");
        let answer = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && answer.contains("1 passed"),
            "{answer}"
        );
        return;
    }
    let resident = || {
        let status =
            std::fs::read_to_string("/proc/self/status").expect("the kernel counts memory");
        let of_own = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"))
            .expect("a line of memory of its own");
        of_own
            .trim()
            .trim_end_matches(" kB")
            .parse::<usize>()
            .expect("a number")
            * 1024
    };
    let keys = IdentityRegistry::new(false);
    let new = |number: usize| KeyRow {
        id: format!("{number:012x}"),
        secret_hash: vec![7; 32],
        agent: format!("agent-{number:06}"),
        access: Some(r#"{"contracts":["desk"],"tools":[]}"#.into()),
        change: number as i64,
        ..row(
            &MintedSecret {
                id: String::new(),
                text: String::new(),
                hash: [0; 32],
            },
            "",
        )
    };
    let before = resident();
    for number in 1..=MANY {
        keys.apply(&[new(number)]);
    }
    let each = resident().saturating_sub(before) / MANY;
    assert!(each <= 300, "{each} bytes a key");
    // The table is that of a million keys, and a change finds its own immediately: the benchmark row `scale` measures it.
    keys.apply(&[KeyRow {
        revoked_ms: Some(1),
        change: MANY as i64 + 1,
        ..new(7)
    }]);
    assert_eq!(keys.seen(), MANY as i64 + 1);
}

/// While all keys are read again, a concurrent read does not apply any change that the first would miss.
#[tokio::test(flavor = "multi_thread")]
async fn keys_stay_while_they_are_taken_over_twice_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let state = GatewayState::open(folder.path()).await.expect("a state");
    let keys: Vec<MintedSecret> = (0..8).map(|_| minted()).collect();
    for key in &keys {
        state.add_key(&row(key, "ann")).await.expect("added");
    }
    let gone = minted();
    state.add_key(&row(&gone, "bob")).await.expect("added");
    state.revoke_key(&gone.id, 1).await.expect("revoked");
    let identities = IdentityRegistry::new(true);
    for round in 1..200 {
        // As after a fail-over, between the two reads.
        let (one, other) = tokio::join!(identities.take_over(&state), async {
            identities.fail_overs.store(round, Ordering::Relaxed);
            identities.take_over(&state).await
        });
        one.and(other).expect("read");
        let refused = identities.resolve(RequestCredential::Key(&gone.text));
        assert_eq!(refused.err(), Some(AuthenticationError::Revoked), "{round}");
        for key in &keys {
            assert!(
                identities
                    .resolve(RequestCredential::Key(&key.text))
                    .is_ok(),
                "{round}"
            );
        }
    }
}
