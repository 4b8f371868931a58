//! Tests which of several tools with the same name runs.

use super::*;
use crate::testing;

/// Two contracts may have a tool of one name for a while: if the build of a plugin is missing, the previous version is served.
#[tokio::test]
async fn a_view_runs_the_tool_that_it_was_made_from() {
    let of = |contract: &str| ViewConfig {
        contracts: vec![contract.to_owned()],
        ..ViewConfig::default()
    };
    let views = ["depot", "desk"].map(|name| (name.to_owned(), of(name)));
    let gateway = testing::gateway(|config| config.views = views.into()).await;
    testing::publish(
        &gateway,
        &[("depot", &["find_part"]), ("desk", &["find_part"])],
    );
    let snapshot = gateway.snapshot();
    let found = |endpoint: CatalogueEndpoint| {
        let tool = snapshot
            .catalogue
            .tool(&endpoint, "find_part", CatalogueViewer::EVERYTHING);
        tool.map(|tool| tool.contract.clone())
    };
    for contract in ["depot", "desk"] {
        assert_eq!(
            found(CatalogueEndpoint::View(contract.into())).as_deref(),
            Some(contract)
        );
        assert_eq!(
            found(CatalogueEndpoint::Contract(contract.into())).as_deref(),
            Some(contract)
        );
    }
    let listing = snapshot
        .catalogue
        .listing(&CatalogueEndpoint::All, CatalogueViewer::EVERYTHING)
        .expect("everything is listed");
    let listed = listing
        .tools
        .find("find_part")
        .map(|tool| tool.contract.clone());
    assert_eq!(
        found(CatalogueEndpoint::All),
        listed,
        "what is listed is what runs"
    );
}
