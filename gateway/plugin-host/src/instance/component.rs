//! An instance of a component.

use std::{collections::HashSet, sync::Arc};

use wasmtime::Store;

use super::Answer;
use crate::{
    AdapterChange, AdapterCondition, AdapterPage, AdapterQuery, AdapterSummaryPage,
    AdapterSummaryQuery, CollectionRef, GuestError, ToolInvocation, ToolRef,
    bindings::v0_1::{
        exports::weir::plugin::{about, collections, items, summaries, tools},
        weir::plugin::{answers, types},
    },
    engine::EngineSize,
    guest::{GuestCall, GuestProfile, GuestState},
    plugin::ComponentCode,
};

pub(crate) struct ComponentInstance {
    store: Store<GuestState>,
    about: about::Guest,
    collections: Option<collections::Guest>,
    summaries: Option<summaries::Guest>,
    tools: Option<tools::Guest>,
    items: Option<items::Guest>,
    /// The keys of the collections that it was configured with.
    configured: HashSet<Arc<str>>,
    /// Whether the plugin's tools have got the operator's settings.
    set_up: bool,
    calls: u32,
    size: EngineSize,
}

impl ComponentInstance {
    /// Runs the guest's start code.
    pub(crate) async fn new(
        code: &ComponentCode,
        size: EngineSize,
        profile: &Arc<GuestProfile>,
        call: GuestCall,
    ) -> wasmtime::Result<Self> {
        let engine = code.component.engine();
        call.meter.resume();
        let mut store = Store::new(engine, GuestState::new(Arc::clone(profile), call));
        store.limiter(|guest| &mut guest.memory);
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(|mut context| context.data_mut().tick());
        // Lists whose elements overlap would otherwise become far more than the memory they are read from.
        store.set_hostcall_fuel(profile.limits.memory_max);
        let instance = code.component.instantiate_async(&mut store).await?;
        let about = code.about.load(&mut store, &instance)?;
        let collections = code
            .collections
            .as_ref()
            .map(|indices| indices.load(&mut store, &instance))
            .transpose()?;
        let summaries = code
            .summaries
            .as_ref()
            .map(|indices| indices.load(&mut store, &instance))
            .transpose()?;
        let tools = code
            .tools
            .as_ref()
            .map(|indices| indices.load(&mut store, &instance))
            .transpose()?;
        let items = code
            .items
            .as_ref()
            .map(|indices| indices.load(&mut store, &instance))
            .transpose()?;
        Ok(Self {
            store,
            about,
            collections,
            summaries,
            tools,
            items,
            configured: HashSet::new(),
            set_up: false,
            calls: 0,
            size,
        })
    }

    /// Takes up another call. Its bounds are counted from nothing.
    pub(crate) fn begin(&mut self, call: GuestCall) {
        call.meter.resume();
        self.store.data_mut().call = call;
        self.store.set_epoch_deadline(1);
        self.calls += 1;
    }

    pub(crate) async fn about(&mut self) -> wasmtime::Result<String> {
        self.about.call_about(&mut self.store).await
    }

    pub(crate) async fn describe(&mut self, adapter: &str, settings: &str) -> Answer<String> {
        let collections = self.collections.as_ref().ok_or_else(no_collections)?;
        collections
            .call_describe(&mut self.store, adapter, settings)
            .await
    }

    pub(crate) async fn read(
        &mut self,
        collection: &CollectionRef,
        query: &AdapterQuery,
    ) -> Answer<AdapterPage> {
        if let Err(error) = self.configure(collection).await? {
            return Ok(Err(error));
        }
        let query = collections::Query {
            conditions: &query
                .conditions
                .iter()
                .map(|condition| collections::Condition {
                    column: &condition.column,
                    comparison: &condition.comparison,
                    value: &condition.value,
                })
                .collect::<Vec<_>>(),
            order: &names(&query.order),
            columns: &names(&query.columns),
            limit: query.limit,
            cursor: query.cursor.as_deref(),
            options: query.options.as_deref(),
        };
        let collections = self.collections.as_ref().ok_or_else(no_collections)?;
        let page = collections
            .call_read(&mut self.store, &collection.key, query)
            .await?;
        Ok(page.map(|page| AdapterPage {
            records: page.records,
            next: page.next,
        }))
    }

    pub(crate) async fn summarize(
        &mut self,
        collection: &CollectionRef,
        query: &AdapterSummaryQuery,
    ) -> Answer<AdapterSummaryPage> {
        if self.summaries.is_none() {
            return Ok(Err(error_record(GuestError::no_summaries())));
        }
        if let Err(error) = self.configure(collection).await? {
            return Ok(Err(error));
        }
        let (conditions, having) = (conditions(&query.conditions), conditions(&query.having));
        let groups = query.groups.iter().map(|group| summaries::Group {
            name: &group.name,
            column: &group.column,
            step: group.step,
        });
        let measures = query.measures.iter().map(|measure| summaries::Measure {
            name: &measure.name,
            function: measure.function,
            column: measure.column.as_deref(),
        });
        let query = summaries::Query {
            conditions: &conditions,
            groups: &groups.collect::<Vec<_>>(),
            measures: &measures.collect::<Vec<_>>(),
            having: &having,
            order: &names(&query.order),
            limit: query.limit,
            options: query.options.as_deref(),
        };
        let summaries = self.summaries.as_ref().ok_or_else(no_collections)?;
        let result = summaries
            .call_summarize(&mut self.store, &collection.key, query)
            .await?;
        Ok(result.map(|summary| AdapterSummaryPage {
            records: summary.records,
            more: summary.more,
        }))
    }

    pub(crate) async fn write(
        &mut self,
        collection: &CollectionRef,
        change: &AdapterChange,
    ) -> Answer<String> {
        if let Err(error) = self.configure(collection).await? {
            return Ok(Err(error));
        }
        let change = collections::Change {
            verb: &change.verb,
            key: change.key.as_deref(),
            record: change.record.as_deref(),
            options: change.options.as_deref(),
        };
        let collections = self.collections.as_ref().ok_or_else(no_collections)?;
        collections
            .call_write(&mut self.store, &collection.key, change)
            .await
    }

    /// Returns the definitions of the plugin's tools, as JSON.
    pub(crate) async fn definitions(&mut self) -> Answer<String> {
        if let Err(error) = self.set_up().await? {
            return Ok(Err(error));
        }
        let tools = self.tools.as_ref().ok_or_else(no_tools)?;
        tools.call_definitions(&mut self.store).await
    }

    /// Returns the definitions of its prompts and resources, JSON.
    pub(crate) async fn item_definitions(&mut self) -> Answer<String> {
        if let Err(error) = self.set_up().await? {
            return Ok(Err(error));
        }
        let items = self.items.as_ref().ok_or_else(no_items)?;
        items.call_definitions(&mut self.store).await
    }

    /// Calls a tool. `context` is the plugin's information about the call, JSON.
    pub(crate) async fn call(
        &mut self,
        tool: &ToolRef,
        invocation: &ToolInvocation,
        context: &str,
    ) -> Answer<answers::Answer> {
        if let Err(error) = self.set_up().await? {
            return Ok(Err(error));
        }
        let (resumed, options) = (invocation.resumed.as_deref(), None);
        if invocation.is_item {
            let (method, params) = (&*tool.tool, &*invocation.arguments);
            let request = items::Request {
                method,
                params,
                context,
                resumed,
                options,
            };
            let items = self.items.as_ref().ok_or_else(no_items)?;
            return items.call_get(&mut self.store, request).await;
        }
        let asked = tools::Invocation {
            tool: &tool.tool,
            arguments: &invocation.arguments,
            context,
            resumed,
            options,
        };
        let tools = self.tools.as_ref().ok_or_else(no_tools)?;
        tools.call_call(&mut self.store, asked).await
    }

    pub(crate) fn calls(&self) -> u32 {
        self.calls
    }

    pub(crate) fn configured(&self) -> usize {
        self.configured.len()
    }

    pub(crate) fn memory_max(&self) -> usize {
        self.store.data().memory.max()
    }

    /// Drops what belonged to the call: its caller's token and receiver must not live on in a parked instance.
    pub(crate) fn end(&mut self) {
        let guest = self.store.data_mut();
        guest.call.meter.pause();
        guest.call.end();
    }

    pub(crate) fn memory_refused(&self) -> bool {
        self.store.data().memory.refused()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.store.data().memory.used()
    }

    pub(crate) fn size(&self) -> EngineSize {
        self.size
    }

    async fn set_up(&mut self) -> Answer<()> {
        if self.set_up {
            return Ok(Ok(()));
        }
        let settings = Arc::clone(&self.store.data().profile.settings);
        let tools = self.tools.as_ref().ok_or_else(no_tools)?;
        let result = tools.call_configure(&mut self.store, &settings).await?;
        self.set_up = result.is_ok();
        Ok(result)
    }

    async fn configure(&mut self, collection: &CollectionRef) -> Answer<()> {
        if self.configured.contains(&collection.key) {
            return Ok(Ok(()));
        }
        let collections = self.collections.as_ref().ok_or_else(no_collections)?;
        let result = collections
            .call_configure(
                &mut self.store,
                &collection.key,
                &collection.adapter,
                &collection.settings,
                &collection.shape,
            )
            .await?;
        if result.is_ok() {
            self.configured.insert(Arc::clone(&collection.key));
        }
        Ok(result)
    }
}

fn conditions(conditions: &[AdapterCondition]) -> Vec<summaries::Condition<'_>> {
    conditions
        .iter()
        .map(|condition| summaries::Condition {
            column: &condition.column,
            comparison: &condition.comparison,
            value: &condition.value,
        })
        .collect()
}

fn error_record(error: GuestError) -> types::Error {
    types::Error {
        code: error.code,
        message: error.message,
        field: error.field,
        retry_after_ms: error.retry_after_ms,
        details: error.details,
    }
}

fn no_collections() -> wasmtime::Error {
    wasmtime::Error::msg("it has no collections")
}

fn no_items() -> wasmtime::Error {
    wasmtime::Error::msg("it has no prompts and no resources")
}

fn no_tools() -> wasmtime::Error {
    wasmtime::Error::msg("it has no tools")
}

fn names(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}
