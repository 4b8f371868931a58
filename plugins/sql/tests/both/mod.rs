//! Asks all databases the same, through the connections that adapters are given.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    path::Path,
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use weir_connections::{ConnectionConfig, ConnectionHandle, ConnectionRegistry, sql};
use weir_plugin_sdk::{
    Adapter, Change, Error, Order, Page, Query, Shape, Verb, serde_json, serde_json::Value, testing,
};
use weir_sql::SqlAdapter;

use crate::{mariadb::MariadbServer, server::Server};

/// The same rows in a database of each kind.
pub(crate) struct Both {
    runtime: tokio::runtime::Runtime,
    folder: tempfile::TempDir,
    server: Rc<Server>,
    /// The statements that another client runs in PostgreSQL as soon as the next statement is answered.
    meanwhile: Rc<RefCell<Option<String>>>,
    sqlite: Arc<sql::SqlConnection>,
    postgresql: Arc<sql::SqlConnection>,
    /// A database of MariaDB and its URL, where a test has one.
    mysql: Option<(String, Arc<sql::SqlConnection>)>,
}

#[derive(Clone, Copy)]
pub(crate) enum Which {
    Sqlite,
    Postgresql,
    Mysql,
}

impl Both {
    /// Makes a database of each kind and runs a script in it.
    pub(crate) fn filled(sqlite: &str, postgresql: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("data.db");
        rusqlite::Connection::open(&path)
            .and_then(|database| database.execute_batch(sqlite))
            .expect("filled");
        let server = Server::started();
        server.script(postgresql);
        let url = server.url();
        Self {
            runtime: tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build()
                .expect("a runtime"),
            folder,
            server: Rc::new(server),
            meanwhile: Rc::default(),
            sqlite: connect(ConnectionConfig::Sqlite { path, write: true }),
            postgresql: connect(ConnectionConfig::Postgresql {
                url,
                write: true,
                pool_max: None,
            }),
            mysql: None,
        }
    }

    /// Makes a database of MariaDB too, which is then asked whatever the others are.
    pub(crate) fn with_mysql(mut self, script: &str) -> Self {
        let server = MariadbServer::shared();
        let url = server.database();
        server.script(&url, script);
        let sql = connect(ConnectionConfig::Mysql {
            url: url.clone(),
            write: true,
            pool_max: None,
        });
        self.mysql = Some((url, sql));
        self
    }

    pub(crate) fn fill_mysql(&self, script: &str) {
        let (url, _) = self.mysql.as_ref().expect("a database of MariaDB");
        MariadbServer::shared().script(url, script);
    }

    /// Runs a script in each database, as another client does.
    pub(crate) fn fill(&self, sqlite: &str, postgresql: &str) {
        self.sqlite_file().execute_batch(sqlite).expect(sqlite);
        self.server.script(postgresql);
    }

    /// Runs a script in PostgreSQL behind the next statement, before that is answered.
    pub(crate) fn fill_behind_next_statement(&self, script: &str) {
        self.meanwhile.replace(Some(script.to_owned()));
    }

    pub(crate) fn sqlite_file(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.folder.path().join("data.db")).expect("opened")
    }

    /// Returns what all answer; panics if they differ.
    pub(crate) fn same<T: PartialEq + std::fmt::Debug>(
        &self,
        act: impl Fn() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let bare = |result: Result<T, Error>| {
            result.map_err(|error| Error {
                details: None,
                ..error
            })
        };
        let sqlite = bare(self.on(Which::Sqlite, &act));
        let postgresql = bare(self.on(Which::Postgresql, &act));
        assert_eq!(
            sqlite, postgresql,
            "SQLite (left) and PostgreSQL (right) differ"
        );
        if self.mysql.is_some() {
            let mysql = bare(self.on(Which::Mysql, &act));
            assert_eq!(sqlite, mysql, "SQLite (left) and MariaDB (right) differ");
        }
        sqlite
    }

    pub(crate) fn on<T>(
        &self,
        which: Which,
        act: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let database = match which {
            Which::Sqlite => self.sqlite.clone(),
            Which::Postgresql => self.postgresql.clone(),
            Which::Mysql => self
                .mysql
                .as_ref()
                .expect("a database of MariaDB")
                .1
                .clone(),
        };
        let runtime = self.runtime.handle().clone();
        let (server, meanwhile) = (Rc::clone(&self.server), Rc::clone(&self.meanwhile));
        testing::reset();
        testing::sql::answer(database.dialect(), move |statement| {
            let parameters = serde_json::to_string(&statement.parameters).expect("JSON");
            let given = sql::SqlStatement {
                text: &statement.text,
                parameters: &parameters,
                limit: statement.limit,
                options: statement.options.as_deref(),
                deadline: Instant::now() + Duration::from_secs(60),
            };
            let writes = statement
                .options
                .as_deref()
                .is_some_and(|options| options.contains("\"write\":true"));
            let options = statement.options.as_deref().unwrap_or_default();
            let counts = writes
                && !statement.text.contains("RETURNING")
                && !options.contains("\"returning\":");
            let mut changed = 0;
            let answer = match writes {
                true if counts => runtime.block_on(database.execute(given)).map(|count| {
                    changed = count;
                    sql::SqlRows {
                        records: "[]".to_owned(),
                        truncated: false,
                    }
                }),
                true => runtime.block_on(database.query_write(given)),
                false => runtime.block_on(database.query(given)),
            };
            if let Some(script) = meanwhile.take() {
                server.script(&script);
            }
            match answer {
                Ok(rows) => Ok(testing::sql::Answer {
                    rows: weir_plugin_sdk::sql::Rows {
                        records: rows.records,
                        truncated: rows.truncated,
                    },
                    changed,
                }),
                Err(error) => Err(Error {
                    field: error.field.clone(),
                    details: error
                        .details
                        .clone()
                        .map(|details| format!("{details} in {}", statement.text)),
                    ..Error::new(error.code.word(), error.message.clone())
                }),
            }
        });
        let result = act();
        if let Err(error) = &result {
            eprintln!("{error} {:?}", error.details);
        }
        result
    }
}

pub(crate) fn walk(both: &Both, table: &str, order: &[Order], limit: u32) -> Vec<String> {
    let mut query = Query {
        order: order.to_vec(),
        limit,
        ..Query::default()
    };
    let mut walked = Vec::new();
    for _ in 0..20 {
        let (records, next) = both
            .same(|| open(table).and_then(|table| table.read(&query)).map(show))
            .expect("a page");
        let records: Vec<&serde_json::value::RawValue> =
            serde_json::from_str(&records).expect("records");
        walked.extend(records.into_iter().map(|record| record.get().to_owned()));
        match next {
            Some(next) => query.cursor = Some(next),
            None => return walked,
        }
    }
    panic!("the walk does not end");
}

/// Reads the records of all pages of a list, some of which may say how many others are left out.
pub(crate) fn read_all(
    mut query: Query,
    read: impl Fn(&Query) -> Result<Page, Error>,
) -> Vec<Value> {
    let mut records = Vec::new();
    for _ in 0..100 {
        let page = read(&query).expect("a page");
        let mut of_page: Value = serde_json::from_str(&page.records).expect("records");
        if of_page.is_object() {
            of_page = of_page["records"].take();
        }
        records.append(of_page.as_array_mut().expect("records"));
        query.cursor = page.next;
        if query.cursor.is_none() {
            return records;
        }
    }
    panic!("the list does not end");
}

pub(crate) fn describe(settings: &str) -> Result<Shape, Error> {
    SqlAdapter::describe(settings)
}

pub(crate) fn open(table: &str) -> Result<SqlAdapter, Error> {
    let settings = format!(r#"{{"connection":"db","table":"{table}"}}"#);
    SqlAdapter::open(&settings, &describe(&settings)?)
}

pub(crate) fn write(table: &str, verb: Verb, key: Value, record: Value) -> Result<String, Error> {
    open(table)?.write(&Change {
        key: object(key),
        record: object(record),
        ..Change::new(verb)
    })
}

pub(crate) fn with(record: &Value, more: Value) -> Value {
    let mut members = object(record.clone());
    members.extend(object(more));
    Value::Object(members)
}

pub(crate) fn object(value: Value) -> serde_json::Map<String, Value> {
    value.as_object().expect("an object").clone()
}

pub(crate) fn show(page: Page) -> (String, Option<String>) {
    (page.records, page.next)
}

pub(crate) fn outline(shape: &Shape) -> String {
    let fields: Vec<_> = shape
        .fields
        .iter()
        .map(|field| {
            format!(
                "{}:{:?}{}",
                field.key,
                field.kind,
                if field.nullable { "" } else { "!" }
            )
        })
        .collect();
    format!(
        "{} key={} write={} read_only={:?}",
        fields.join(" "),
        shape.key.join(","),
        shape.capabilities.write.join(","),
        shape.capabilities.read_only
    )
}

fn connect(config: ConnectionConfig) -> Arc<sql::SqlConnection> {
    let configs = BTreeMap::from([("db".to_owned(), config)]);
    match ConnectionRegistry::new(&configs, Path::new("/"))
        .expect("a database")
        .get("db")
    {
        Some(ConnectionHandle::Sql(sql)) => sql.clone(),
        _ => unreachable!("it is a database"),
    }
}
