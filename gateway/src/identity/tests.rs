//! Keys and what they open.

use super::*;

fn row(minted: &Minted, agent: &str) -> KeyRow {
    KeyRow {
        id: minted.id.clone(),
        secret_hash: minted.hash.to_vec(),
        agent: agent.into(),
        tenant: "acme".into(),
        access: None,
        limits: None,
        created_ms: 1,
        created_by: "test".into(),
        expires_ms: None,
        revoked_ms: None,
    }
}

fn minted() -> Minted {
    Minted::new(Kind::Agent).expect("random numbers")
}

#[test]
fn without_keys_everyone_is_local_unless_keys_are_required() {
    let open = Identities::new(&[], false);
    assert_eq!(open.resolve(Credential::None), Ok(Caller::local()));
    let closed = Identities::new(&[], true);
    assert_eq!(closed.resolve(Credential::None), Err(Refused::Missing));
}

#[test]
fn a_key_resolves_to_its_agent_and_nothing_else_does() {
    let (key, other) = (minted(), minted());
    let keys = Identities::new(&[row(&key, "ann")], false);
    let resolve = |text: &str| keys.resolve(Credential::Key(text));
    let caller = resolve(&key.text).expect("known");
    assert_eq!((&*caller.agent, &*caller.tenant), ("ann", "acme"));
    assert_eq!(resolve(&other.text), Err(Refused::Unknown));
    let swapped = format!("{}{}", &key.text[..key.text.len() - 64], &other.text[other.text.len() - 64..]);
    assert_eq!(resolve(&swapped), Err(Refused::Unknown), "the id of one, the secret of another");
    for bad in ["", "weir_", "weir__", &key.text.to_uppercase(), &key.text[1..], &format!("{}0", key.text)] {
        assert_eq!(resolve(bad), Err(Refused::Malformed), "{bad}");
    }
    assert_eq!(keys.resolve(Credential::None), Err(Refused::Missing));
}

#[test]
fn revoking_and_expiring_close_at_once_and_never_open_to_everyone() {
    let (key, old) = (minted(), minted());
    let keys = Identities::new(&[row(&key, "ann"), KeyRow { expires_ms: Some(1), ..row(&old, "bob") }], false);
    assert_eq!(keys.resolve(Credential::Key(&old.text)), Err(Refused::Expired));
    let caller = keys.resolve(Credential::Key(&key.text)).expect("known");
    keys.replace(&[row(&key, "ann")]);
    assert!(!caller.revoked().is_cancelled(), "an unchanged key keeps what it has open");
    keys.replace(&[KeyRow { revoked_ms: Some(1), ..row(&key, "ann") }]);
    assert!(caller.revoked().is_cancelled());
    assert_eq!(keys.resolve(Credential::Key(&key.text)), Err(Refused::Revoked));
    assert_eq!(keys.resolve(Credential::None), Err(Refused::Missing), "the last key gone opens nothing");
}

#[test]
fn a_header_is_one_bearer_or_nothing() {
    fn of<'a>(values: &[&'a str]) -> Credential<'a> {
        Credential::of_header(values.iter().map(|value| value.as_bytes()))
    }
    assert!(matches!(of(&[]), Credential::None));
    assert!(matches!(of(&["Bearer abc"]), Credential::Key("abc")));
    assert!(matches!(of(&["bEARER  abc "]), Credential::Key("abc")));
    for bad in [&["Basic abc"] as &[&str], &["Bearer a", "Bearer b"], &["Bearer"], &[""], &["é"]] {
        assert!(matches!(of(bad), Credential::Malformed), "{bad:?}");
    }
}

#[test]
fn an_access_list_that_cannot_be_read_allows_nothing() {
    let key = minted();
    let access = |text: &str| {
        let keys = Identities::new(&[KeyRow { access: Some(text.into()), ..row(&key, "ann") }], false);
        keys.resolve(Credential::Key(&key.text)).expect("known").access().clone()
    };
    assert!(!access("{\"contarcts\":[\"desk\"]}").allows("desk", "list"));
    let some = access(r#"{"contracts":["desk"],"tools":["find_part"]}"#);
    assert!(some.allows("desk", "anything") && some.allows("depot", "find_part") && !some.allows("depot", "x"));
}
