//! The methods we answer, and which era has them.

/// The methods of MCP that are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RpcMethod {
    Discover,
    Initialize,
    Ping,
    ListTools,
    CallTool,
    Listen,
    ListPrompts,
    GetPrompt,
    ListResources,
    ListResourceTemplates,
    ReadResource,
    Complete,
    SetLogLevel,
    Subscribe,
    Unsubscribe,
    GetTask,
    UpdateTask,
    CancelTask,
}

// What counts by method finds its place by the number of the variant.
const _: () = {
    let mut at = 0;
    while at < RpcMethod::ALL.len() {
        assert!(
            RpcMethod::ALL[at] as usize == at,
            "`ALL` has the order of the declaration"
        );
        at += 1;
    }
};

impl RpcMethod {
    /// In the order of the declaration.
    pub const ALL: [Self; 18] = [
        Self::Discover,
        Self::Initialize,
        Self::Ping,
        Self::ListTools,
        Self::CallTool,
        Self::Listen,
        Self::ListPrompts,
        Self::GetPrompt,
        Self::ListResources,
        Self::ListResourceTemplates,
        Self::ReadResource,
        Self::Complete,
        Self::SetLogLevel,
        Self::Subscribe,
        Self::Unsubscribe,
        Self::GetTask,
        Self::UpdateTask,
        Self::CancelTask,
    ];

    /// Returns the name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Discover => "server/discover",
            Self::Initialize => "initialize",
            Self::Ping => "ping",
            Self::ListTools => "tools/list",
            Self::CallTool => "tools/call",
            Self::Listen => "subscriptions/listen",
            Self::ListPrompts => "prompts/list",
            Self::GetPrompt => "prompts/get",
            Self::ListResources => "resources/list",
            Self::ListResourceTemplates => "resources/templates/list",
            Self::ReadResource => "resources/read",
            Self::Complete => "completion/complete",
            Self::SetLogLevel => "logging/setLevel",
            Self::Subscribe => "resources/subscribe",
            Self::Unsubscribe => "resources/unsubscribe",
            Self::GetTask => "tasks/get",
            Self::UpdateTask => "tasks/update",
            Self::CancelTask => "tasks/cancel",
        }
    }

    /// Returns which eras have the method: legacy, modern.
    fn eras(self) -> (bool, bool) {
        match self {
            Self::ListTools
            | Self::CallTool
            | Self::ListPrompts
            | Self::GetPrompt
            | Self::ListResources
            | Self::ListResourceTemplates
            | Self::ReadResource
            | Self::Complete => (true, true),
            Self::Initialize
            | Self::Ping
            | Self::SetLogLevel
            | Self::Subscribe
            | Self::Unsubscribe => (true, false),
            Self::Discover | Self::Listen | Self::GetTask | Self::UpdateTask | Self::CancelTask => {
                (false, true)
            }
        }
    }

    /// Returns the method of that name in that era.
    pub fn find(method: &str, modern: bool) -> Option<Self> {
        let found = Self::ALL.into_iter().find(|known| known.name() == method)?;
        let (in_legacy, in_modern) = found.eras();
        (if modern { in_modern } else { in_legacy }).then_some(found)
    }
}
