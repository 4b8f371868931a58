//! A look at another server before it is added: its offer, the findings of lint, and the cost of its tools. Only servers
//! behind a URL are looked at: no command is started for a request.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    slice,
    sync::{Arc, LazyLock},
    time::Duration,
};

use serde::Serialize;
use serde_json::Value;
use tokio::sync::Semaphore;
use url::Url;
use utoipa::ToSchema;
use weir_audit::AdminAct;
use weir_connections::mask::PassingSecrets;
use weir_contracts::{
    CompiledContract, ContractTool, contract::CallTarget, lint::LintFinding,
    upstream::UpstreamOverlay,
};
use weir_upstream::{UpstreamConfig, UpstreamRegistry};

use super::{OperationError, OperationResult, preview::describe};
use crate::{
    catalogue::{CatalogueEndpoint, CatalogueTool, CatalogueViewer, ListShape, ToolCatalogue},
    control::{ControlPlane, gate::first_fingerprint, sources::upstreams::offer},
    identity::CatalogueAccess,
    tokens::vocabulary,
};

/// The time within which a server must answer.
const LOOK_MAX: Duration = Duration::from_secs(30);
const HEADERS_MAX: usize = 16;
const VALUE_MAX_BYTES: usize = 4096;
/// The overlay of a request, as problems name it.
const OVERLAY: &str = "overlay";
/// The number of servers that are looked at concurrently.
static LOOKING: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(2));

/// A server that may be added.
pub(crate) struct UpstreamLook {
    /// The name that it would get.
    pub name: String,
    pub url: String,
    /// Headers for this look only; they are not stored.
    pub headers: BTreeMap<String, String>,
    /// The text of an overlay, which chooses and renames its tools.
    pub overlay: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct UpstreamOffer {
    pub name: String,
    /// The server's own name and version.
    #[schema(value_type = Object)]
    pub server: Value,
    /// The compiled document of its offer, with the names that agents would see.
    #[schema(value_type = Object)]
    pub document: Value,
    /// Each of its tools, ordered by the names that agents would see.
    pub tools: Vec<OfferedTool>,
    /// Its prompts and resource templates.
    pub items: Vec<OfferedItem>,
    /// Resources that it lists now. They are fetched each time, and are not part of what an operator agrees to.
    pub resources: usize,
    /// Its instructions to models.
    pub instructions: Option<String>,
    /// Items that cannot be published, and why.
    pub left_out: Vec<String>,
    /// What would be published differently from what it wrote.
    pub notes: Vec<String>,
    /// All findings of lint.
    #[schema(value_type = Vec<Object>)]
    pub lint: Vec<LintFinding>,
    /// The size of a list of its tools.
    pub bytes: usize,
    /// An estimate of the tokens that a model reads for them, as in `weir tools cost`.
    pub tokens: usize,
    /// What an operator agrees to, as `weir upstream add` shows it.
    pub fingerprint: String,
}

/// A tool of a server's offer, and its cost.
#[derive(Serialize, ToSchema)]
pub(crate) struct OfferedTool {
    /// Its name at the server, which an overlay uses.
    pub from: String,
    /// The name that agents would see.
    pub name: String,
    /// The size of its entry in a list.
    pub bytes: usize,
    /// An estimate of the tokens that a model reads for it.
    pub tokens: usize,
}

/// A prompt or a resource template that a server offers.
#[derive(Serialize, ToSchema)]
pub(crate) struct OfferedItem {
    /// `prompt` or `template`.
    pub kind: &'static str,
    /// Its name at the server, which an overlay uses.
    pub from: String,
    /// The name or URI template that agents would see.
    pub name: String,
    pub description: Option<String>,
}

impl OfferedItem {
    fn list(contract: &CompiledContract) -> Vec<Self> {
        let prompts = contract.prompts.iter().map(|prompt| Self {
            kind: "prompt",
            from: prompt.own_name.clone(),
            name: prompt.name.clone(),
            description: prompt.description.clone(),
        });
        let templates = contract.templates.iter().map(|template| Self {
            kind: "template",
            from: template.name.clone(),
            name: template.uri_template.clone(),
            description: template.description.clone(),
        });
        prompts.chain(templates).collect()
    }
}

/// Looks at a server. Nothing is added.
pub(crate) async fn look_at(
    control: &ControlPlane,
    wanted: UpstreamLook,
    by: &str,
) -> OperationResult<UpstreamOffer> {
    let shown = wanted.check()?;
    let overlay = wanted.read_overlay()?;
    let _turn = LOOKING
        .try_acquire()
        .map_err(|_| OperationError::unavailable("other servers are being looked at: try again"))?;
    let audit = control.gateway().audit();
    audit.admin(AdminAct::UpstreamLook, &shown, None, by, None)?;
    let UpstreamLook {
        name, url, headers, ..
    } = wanted;
    let values = headers.values().chain([&url]).map(String::as_str);
    let _secrets = PassingSecrets::note(values);
    let settings = UpstreamConfig {
        url: Some(url),
        headers,
        ..UpstreamConfig::default()
    };
    let config = control.gateway().config();
    let servers = UpstreamRegistry::new(Vec::<OsString>::new());
    let only = BTreeMap::from([(name.clone(), settings.clone())]);
    let (resolved, wrong) = servers.resolve(&only, &config.base, &config.kept_files());
    drop(config);
    if let Some((_, what)) = wrong.into_iter().next() {
        return Err(OperationError::invalid(format!("the server {what}")));
    }
    servers.take(resolved);
    let server = servers
        .get(&name)
        .ok_or_else(|| OperationError::unavailable("the server was not added"))?;
    let listed = tokio::time::timeout(LOOK_MAX, server.lists()).await;
    servers.close().await;
    let (listed, about) = listed
        .map_err(|_| {
            let seconds = LOOK_MAX.as_secs();
            OperationError::unavailable(format!("the server did not answer within {seconds} s"))
        })?
        .map_err(|failure| OperationError::unavailable(failure.in_one_line()))?;
    let resources = listed.resources.as_ref().map_or(0, Vec::len);
    let taken = control.gate().names_taken_from(&name).await?;
    let offer = offer::compile_with(&name, &settings, overlay, listed, &about, &taken)
        .map_err(|problems| OperationError::problems("no part of it can be published", problems))?;
    let left_out: BTreeSet<String> = offer
        .compiled
        .left_out
        .iter()
        .map(ToString::to_string)
        .collect();
    let fingerprint = first_fingerprint(&offer.compiled.contract);
    let items = OfferedItem::list(&offer.compiled.contract);
    let instructions = offer.compiled.contract.instructions.clone();
    let tools = measure(offer.compiled.contract.clone()).await?;
    let described = describe(offer.compiled.contract).await?;
    Ok(UpstreamOffer {
        name,
        server: serde_json::from_str(&offer.server).unwrap_or_default(),
        document: described.document.unwrap_or_default(),
        tools,
        items,
        resources,
        instructions,
        left_out: left_out.into_iter().collect(),
        notes: offer.notes,
        lint: described.lint,
        bytes: described.bytes,
        tokens: described.tokens,
        fingerprint,
    })
}

/// Returns the cost of each single tool.
async fn measure(contract: CompiledContract) -> OperationResult<Vec<OfferedTool>> {
    let measured = tokio::task::spawn_blocking(move || {
        let contract = Arc::new(contract);
        let alone = ToolCatalogue::new(slice::from_ref(&contract), &BTreeMap::new(), None);
        let Some(listing) = alone.listing(
            &CatalogueEndpoint::All,
            CatalogueViewer::Operator(&CatalogueAccess::EVERYTHING),
        ) else {
            return Vec::new();
        };
        let measure = |tool: &Arc<CatalogueTool>| {
            let written = |shape| listing.tools.write_entry(shape, tool);
            OfferedTool {
                from: name_at_server(&tool.tool),
                name: tool.name.to_string(),
                bytes: written(ListShape::Modern).len(),
                tokens: vocabulary().count(&written(ListShape::Plain)),
            }
        };
        listing.tools.entries().iter().map(measure).collect()
    });
    measured
        .await
        .map_err(|_| OperationError::unavailable("the tools could not be measured"))
}

fn name_at_server(tool: &ContractTool) -> String {
    match &tool.target {
        CallTarget::Offer(offer) => offer.name.clone(),
        CallTarget::Form | CallTarget::Collection(_) => tool.name.clone(),
    }
}

impl UpstreamLook {
    fn read_overlay(&self) -> OperationResult<Option<UpstreamOverlay>> {
        let read = |text: &String| UpstreamOverlay::read(OVERLAY, text);
        let overlay = self.overlay.as_ref().map(read).transpose();
        overlay.map_err(|problems| OperationError::problems("the overlay cannot be read", problems))
    }

    /// Refuses names that would reach beyond the request, and returns the address without parts that may be secret.
    fn check(&self) -> OperationResult<String> {
        if weir_contracts::name::check_contract(&self.name).is_err() {
            return Err(OperationError::invalid(
                "`name` must be a lowercase letter and then up to 31 of a-z, 0-9 and `-`",
            ));
        }
        let url = Url::parse(&self.url).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let url =
            url.ok_or_else(|| OperationError::invalid("`url` must be an http or https URL"))?;
        if !url.username().is_empty() || url.password().is_some() {
            let detail = "`url` may hold no credentials: send them as `Authorization` in `headers`";
            return Err(OperationError::invalid(detail));
        }
        let is_short = self.headers.len() <= HEADERS_MAX
            && self
                .headers
                .values()
                .all(|value| value.len() <= VALUE_MAX_BYTES);
        if !is_short {
            let detail =
                format!("`headers`: at most {HEADERS_MAX}, each of {VALUE_MAX_BYTES} bytes");
            return Err(OperationError::invalid(detail));
        }
        // A reference would send a secret of the gateway to an address of the request.
        let mut texts = self.headers.values().chain([&self.url]);
        if texts.any(|text| {
            text.contains("${") || text.starts_with("env:") || text.starts_with("file:")
        }) {
            let detail =
                "`url` and `headers` take values, and no references to secrets of the gateway";
            return Err(OperationError::invalid(detail));
        }
        Ok(format!(
            "{}{}",
            url.origin().ascii_serialization(),
            url.path()
        ))
    }
}
