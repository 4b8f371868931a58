//! How many drafts are kept.

use weir_state::{ContractOrigin, NewDraft, StateError};

use crate::{Place, contracts::draft};

/// An author with drafts of ever new names fills neither the list of those that wait nor the disk.
pub(crate) async fn the_drafts_of_one_author_are_bounded(place: &Place) {
    fn submitted<'a>(by: &'a str, contract: &'a str, source: &'a str) -> NewDraft<'a> {
        NewDraft {
            contract,
            origin: ContractOrigin::Api,
            by,
            ..draft(contract, None, source)
        }
    }
    let state = place.open().await;
    let names: Vec<String> = (0..=200).map(|number| format!("d{number:03}")).collect();
    let (last, names) = names.split_last().expect("many");
    for name in names {
        let new = submitted("admin:eve", name, "s");
        state.hold(&new).await.expect("held");
    }
    let is_full = async |new: NewDraft<'_>, words: &str| {
        let refused = state.hold(&new).await;
        let is_full = matches!(&refused, Err(StateError::Full(why)) if why.contains(words));
        assert!(is_full, "{refused:?}");
    };
    let words = "200 drafts of admin:eve wait";
    is_full(submitted("admin:eve", last, "s"), words).await;
    // One takes the place of its predecessor, and another author has room.
    let again = NewDraft {
        id: "again",
        ..submitted("admin:eve", &names[0], "other")
    };
    state.hold(&again).await.expect("held");
    let anns = submitted("admin:ann", last, "s");
    state.hold(&anns).await.expect("held");
    state.discard(&names[1], 3, "admin:ann").await.expect("it");
    let next = submitted("admin:eve", "next", "s");
    state.hold(&next).await.expect("there is room again");

    let long = "x".repeat(33 << 20);
    for name in ["long-1", "long-2", "long-3"] {
        let held = state.hold(&submitted("admin:bob", name, &long)).await;
        assert_eq!(held.expect("one always has room"), name);
        is_full(submitted("admin:bob", "more", &long), "with 33 MiB of text").await;
        state.discard(name, 3, "admin:bob").await.expect("it");
    }
    let short = submitted("admin:bob", "short", "s");
    state.hold(&short).await.expect("held");
    let mut kept = Vec::new();
    for name in ["long-1", "long-2", "long-3"] {
        kept.push(state.draft(name).await.expect("read").is_some());
    }
    assert_eq!(kept, [false, false, true], "the newest of 64 MiB");
}
