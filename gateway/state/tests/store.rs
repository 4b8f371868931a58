//! Tests what the gateway keeps of its own: secrets, recorded shapes, builds of plugins.

use weir_state::{RecordedShape, SecretPurpose, State};

async fn state() -> (tempfile::TempDir, State) {
    let folder = tempfile::tempdir().expect("a folder");
    let state = State::open(&folder.path().join("state"))
        .await
        .expect("opened");
    (folder, state)
}

fn shape() -> RecordedShape {
    RecordedShape {
        contract: "desk".into(),
        collection: "rooms".into(),
        adapter: "sheet".into(),
        settings: "{}".into(),
        shape: "{\"columns\":[]}".into(),
    }
}

#[tokio::test]
async fn a_secret_is_made_once_among_processes_that_start_together() {
    let (folder, one) = state().await;
    let two = State::open(&folder.path().join("state"))
        .await
        .expect("opened again");
    assert_eq!(
        two.known_secret(SecretPurpose::Cursors)
            .await
            .expect("read"),
        None
    );
    let (left, right) = tokio::join!(
        one.secret(SecretPurpose::Cursors),
        two.secret(SecretPurpose::Cursors)
    );
    let secret = left.expect("made");
    assert_eq!(secret, right.expect("the same"));
    assert_ne!(
        secret,
        one.secret(SecretPurpose::Arguments).await.expect("another"),
        "each purpose has its own"
    );
    let reading = State::open_to_read(&folder.path().join("state"))
        .await
        .expect("opened to read");
    let known = reading.known_secret(SecretPurpose::Cursors).await;
    assert_eq!(known.expect("read"), Some(secret));
    assert!(
        reading.secret(SecretPurpose::Arguments).await.is_ok()
            && reading.record_shape(&shape()).await.is_err(),
        "nothing is changed through it"
    );
    assert!(State::open_to_read(folder.path()).await.is_err());
    assert!(!folder.path().join(weir_state::FILE).exists());
}

#[tokio::test]
async fn a_shape_takes_the_place_of_the_one_before_it_and_moves_the_feed_where_it_differs() {
    let (_folder, state) = state().await;
    let mut shape = shape();
    state.record_shape(&shape).await.expect("recorded");
    let first = state.generation().await.expect("read");
    state.record_shape(&shape).await.expect("the same again");
    assert_eq!(state.generation().await.expect("read"), first);
    shape.settings = "{\"file\":\"b.csv\"}".into();
    state.record_shape(&shape).await.expect("recorded");
    assert_eq!(state.generation().await.expect("read"), first + 1);
    assert_eq!(state.shapes("desk").await.expect("read"), [shape]);
    assert!(state.shapes("other").await.expect("read").is_empty());
}
