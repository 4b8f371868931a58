//! A server of one bucket that speaks as much S3 as copies need. The test decides how many objects it accepts, and inspects it.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt::Write as _,
    sync::Arc,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Query, State},
    http::{HeaderMap, Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use futures::{StreamExt as _, stream};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

/// The path of the bucket.
const PLACE: &str = "/trail/";

/// An object, and the checksum that came with it.
#[derive(Clone)]
pub(super) struct StoredObject {
    pub(super) content: Bytes,
    pub(super) checksum: Option<String>,
}

pub(super) struct CountedBucket {
    pub(super) endpoint: String,
    pub(super) content: Arc<BucketContent>,
}

pub(super) struct BucketContent {
    pub(super) objects: Mutex<BTreeMap<String, StoredObject>>,
    /// Objects that are still taken; the next ones wait.
    pub(super) puts: Semaphore,
    /// Answers that are sent to their end; the next ones wait after their first half.
    pub(super) reads: Semaphore,
}

impl CountedBucket {
    /// Starts a bucket that accepts the given number of objects and serves all of them.
    pub(super) async fn start(puts: usize) -> Self {
        let content = Arc::new(BucketContent {
            objects: Mutex::default(),
            puts: Semaphore::new(puts),
            reads: Semaphore::new(Semaphore::MAX_PERMITS),
        });
        let app = Router::new().fallback(answer).with_state(content.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self {
            endpoint: format!("http://{address}"),
            content,
        }
    }

    /// Returns the section of the configuration that names this bucket.
    pub(super) fn config(&self, more: &str) -> String {
        format!(
            "[audit]\ncopies = \"s3://trail/weir\"\ncopies_endpoint = \"{}\"\ncopies_region = \"eu-central-1\"\n{more}",
            self.endpoint
        )
    }

    /// Returns the text of all objects.
    pub(super) fn text(&self) -> String {
        let objects = self.content.objects.lock();
        let texts = objects.values();
        texts
            .map(|object| String::from_utf8_lossy(&object.content).into_owned())
            .collect()
    }
}

async fn answer(
    State(bucket): State<Arc<BucketContent>>,
    method: Method,
    uri: Uri,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if query.contains_key("list-type") {
        return list(&bucket, &query).into_response();
    }
    let Some(key) = uri.path().strip_prefix(PLACE) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    match method {
        Method::PUT => {
            let turn = bucket.puts.acquire().await;
            turn.expect("it is never closed").forget();
            let checksum = headers.get("x-amz-checksum-sha256");
            let checksum = checksum.and_then(|value| Some(value.to_str().ok()?.to_owned()));
            let object = StoredObject {
                content: body,
                checksum,
            };
            bucket.objects.lock().insert(key.to_owned(), object);
            [(header::ETAG, "\"1\"")].into_response()
        }
        _ => read(&bucket, key, &headers),
    }
}

fn read(bucket: &Arc<BucketContent>, key: &str, headers: &HeaderMap) -> Response {
    let Some(object) = bucket.objects.lock().get(key).cloned() else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let all = object.content.len();
    let range = headers.get(header::RANGE).and_then(|range| {
        let from = range.to_str().ok()?.strip_prefix("bytes=")?;
        from.strip_suffix('-')?.parse::<usize>().ok()
    });
    let content = object.content.slice(range.unwrap_or(0)..);
    let bytes = content.len();
    let (first, rest) = (content.slice(..bytes / 2), content.slice(bytes / 2..));
    let bucket = bucket.clone();
    let parts = stream::iter([first]).chain(stream::once(async move {
        let turn = bucket.reads.acquire().await;
        turn.expect("it is never closed").forget();
        rest
    }));
    let mut response = Response::builder()
        .header(header::CONTENT_LENGTH, bytes)
        .header(header::ETAG, "\"1\"")
        .header(header::LAST_MODIFIED, "Sat, 22 Aug 2026 10:15:30 GMT");
    if let Some(from) = range {
        let content_range = format!("bytes {from}-{}/{all}", all - 1);
        response = response
            .status(StatusCode::PARTIAL_CONTENT)
            .header(header::CONTENT_RANGE, content_range);
    }
    let body = Body::from_stream(parts.map(Ok::<_, std::convert::Infallible>));
    response.body(body).expect("a response")
}

fn list(bucket: &BucketContent, query: &HashMap<String, String>) -> String {
    let prefix = query.get("prefix").map(String::as_str).unwrap_or_default();
    let mut xml = String::from("<ListBucketResult>");
    let mut folders = BTreeSet::new();
    for (key, object) in &*bucket.objects.lock() {
        let Some(rest) = key.strip_prefix(prefix) else {
            continue;
        };
        if query.contains_key("delimiter")
            && let Some((folder, _)) = rest.split_once('/')
        {
            folders.insert(format!("{prefix}{folder}/"));
            continue;
        }
        let bytes = object.content.len();
        let modified = "2026-08-22T10:15:30.000Z";
        let _ = write!(
            xml,
            "<Contents><Key>{key}</Key><LastModified>{modified}</LastModified><Size>{bytes}</Size></Contents>"
        );
    }
    for folder in folders {
        let _ = write!(
            xml,
            "<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>"
        );
    }
    xml + "</ListBucketResult>"
}
