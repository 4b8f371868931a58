//! Tests for a state in a file alone.

use weir_state::{ContractOrigin, DraftStatus, GatewayState, VersionRow, VersionSource};

use crate::{
    Place,
    contracts::{FILE, publish, version},
};

async fn state() -> (tempfile::TempDir, GatewayState) {
    let folder = tempfile::tempdir().expect("a folder");
    let state = GatewayState::open(&folder.path().join("state"))
        .await
        .expect("opened");
    (folder, state)
}

#[tokio::test]
async fn a_backup_opens_as_a_state() {
    let (folder, state) = state().await;
    publish(&state, None, FILE, &version("1.0.0"), None)
        .await
        .expect("published");
    let copy = folder.path().join("copy");
    std::fs::create_dir(&copy).expect("made");
    state
        .back_up(&copy.join(weir_state::FILE))
        .await
        .expect("copied");
    let restored = GatewayState::open(&copy).await.expect("opened");
    assert_eq!(restored.live().await.expect("read")[0].version, "1.0.0");
    assert!(
        state.back_up(&copy.join(weir_state::FILE)).await.is_err(),
        "nothing is overwritten"
    );
}

#[tokio::test]
async fn a_file_of_a_later_version_is_refused_in_words() {
    let place = Place::file();
    drop(place.open().await);
    let later = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (99, 'later', TRUE, x'00', 1)";
    place.run(later).await;
    let opened = [
        GatewayState::open(&place.folder()).await,
        GatewayState::open_to_read(&place.folder()).await,
    ];
    for refused in opened {
        let why = refused.expect_err("this program is older").to_string();
        assert!(
            why.contains("a later version of weir") && why.contains("the number 99"),
            "{why}"
        );
    }
}

#[tokio::test]
async fn the_file_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let (_folder, state) = state().await;
    let mode = std::fs::metadata(state.path())
        .expect("there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn many_may_open_a_new_state_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime
            .block_on(GatewayState::open(folder.path()))
            .map(drop)
    };
    std::thread::scope(|scope| {
        let opened: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
        for opened in opened {
            opened.join().expect("no panic").expect("opened");
        }
    });
}

/// The tables of a state that an earlier version made are made anew once, and nothing in them is lost.
#[tokio::test]
async fn a_state_of_before_keeps_its_versions_and_drafts() {
    let folder = tempfile::tempdir().expect("a folder");
    let options =
        sqlx::sqlite::SqliteConnectOptions::new().filename(folder.path().join(weir_state::FILE));
    let pool = sqlx::SqlitePool::connect_with(options.create_if_missing(true))
        .await
        .expect("opened");
    let migrations = [
        (
            1,
            "first",
            include_str!("../../migrations/sqlite/0001_first.sql"),
        ),
        (
            2,
            "profiles",
            include_str!("../../migrations/sqlite/0002_profiles.sql"),
        ),
        (
            3,
            "waiting",
            include_str!("../../migrations/sqlite/0003_waiting.sql"),
        ),
        (
            4,
            "before",
            include_str!("../../migrations/sqlite/0004_before.sql"),
        ),
    ];
    let migration = |(version, name, sql): (i64, &'static str, &'static str)| {
        let kind = sqlx::migrate::MigrationType::Simple;
        sqlx::migrate::Migration::new(
            version,
            name.into(),
            kind,
            sqlx::SqlStr::from_static(sql),
            false,
        )
    };
    let before =
        sqlx::migrate::Migrator::with_migrations(migrations.into_iter().map(migration).collect());
    before.run(&pool).await.expect("made as before");
    let rows =
        "INSERT INTO contracts (name, origin, live, revision, last) VALUES ('desk', 'file', '1.1.0', 7, '1.0.0');
        INSERT INTO versions VALUES ('desk', '1.0.0', '{}', 's', 'first', 'f', 1, 'ann');
        INSERT INTO versions VALUES ('desk', '1.1.0', '{\"a\":1}', 't', 'compatible', 'g', 2, 'ann');
        INSERT INTO drafts (id, contract, source, origin, class, fingerprint, report, created_ms, created_by)
            VALUES ('d1', 'desk', 'u', 'file', 'breaking', 'h', '{}', 3, 'file');";
    sqlx::raw_sql(rows).execute(&pool).await.expect("written");
    pool.close().await;
    let state = GatewayState::open(folder.path()).await.expect("opened");
    let live = state.live().await.expect("read").remove(0);
    assert_eq!(
        (live.revision, live.artifact.as_str(), live.owner),
        (7, "{\"a\":1}", None)
    );
    assert_eq!(state.versions("desk").await.expect("read").len(), 2);
    assert_eq!(
        state
            .draft("d1")
            .await
            .expect("read")
            .expect("there")
            .head
            .status,
        DraftStatus::Pending
    );
    let generation = state.generation().await.expect("read");
    assert!(
        state
            .claim("desk", None, "/srv/contracts")
            .await
            .expect("claimed")
    );
    assert!(
        !state
            .claim("desk", None, "/elsewhere")
            .await
            .expect("asked"),
        "it is owned by now"
    );
    assert!(
        state.generation().await.expect("read") > generation,
        "others see it"
    );
    for origin in [ContractOrigin::Code, ContractOrigin::Upstream] {
        let source = VersionSource {
            origin,
            owner: None,
        };
        let row = VersionRow {
            contract: origin.as_str().into(),
            ..version("1.0.0")
        };
        publish(&state, None, source, &row, None)
            .await
            .expect("another origin");
    }
    assert_eq!(state.live().await.expect("read").len(), 3);
}

#[tokio::test]
async fn a_state_that_is_not_there_is_not_made_to_be_read() {
    let folder = tempfile::tempdir().expect("a folder");
    assert!(GatewayState::open_to_read(folder.path()).await.is_err());
    assert!(!folder.path().join(weir_state::FILE).exists());
}
