//! The ledger in Valkey, or in Redis. The clock is the server's, and a script does the arithmetic.

use redis::{
    Client, Script,
    aio::{ConnectionManager, ConnectionManagerConfig},
};

use crate::request::{ANSWER_MAX, LedgerError, LedgerGrant, TokenRequest};

/// All buckets are one slot of a cluster, since one script changes them.
const PREFIX: &[u8] = b"{weir-limits}:";
/// Fields of a request.
const FIELDS: usize = 3;

/// Answers a batch. Numbers go as text, since a script's numbers lose their fractions. A bucket is dropped when it is full.
const APPLY: &str = r"
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1e6
local answers = {}
for i, key in ipairs(KEYS) do
  local rate = tonumber(ARGV[3 * i - 2])
  local burst = tonumber(ARGV[3 * i - 1])
  local wanted = tonumber(ARGV[3 * i])
  local bucket = redis.call('HMGET', key, 'level', 'at')
  local level = tonumber(bucket[1]) or burst
  local at = tonumber(bucket[2]) or now
  if at > now + 1 then at = now end
  level = math.min(burst, level + math.max(0, now - at) * rate - math.min(wanted, 0))
  local granted = math.max(0, math.min(wanted, math.floor(level + 1e-6)))
  level = level - granted
  redis.call('HSET', key, 'level', string.format('%.17g', level), 'at', string.format('%.17g', math.max(at, now)))
  redis.call('PEXPIRE', key, math.ceil((burst - level) / rate * 1000) + 60000)
  answers[i] = string.format('%d %.17g', granted, level)
end
return answers
";

/// The ledger at a server that is reached by one connection, which is reopened if it is lost.
#[derive(Clone)]
pub struct ValkeyLedger {
    connection: ConnectionManager,
    script: Script,
}

impl ValkeyLedger {
    /// Connects when it is first asked. The message about a wrong URL repeats no part of it.
    pub fn new(url: &str) -> Result<Self, LedgerError> {
        let explain = |_| LedgerError("is not a URL of Valkey or Redis".to_owned());
        let client = Client::open(url).map_err(explain)?;
        let config = ConnectionManagerConfig::new()
            .set_number_of_retries(1)
            .set_connection_timeout(Some(ANSWER_MAX))
            .set_response_timeout(Some(ANSWER_MAX));
        let connection =
            ConnectionManager::new_lazy_with_config(client, config).map_err(explain)?;
        Ok(Self {
            connection,
            script: Script::new(APPLY),
        })
    }

    pub(crate) async fn apply(
        &self,
        requests: &[TokenRequest],
    ) -> Result<Vec<LedgerGrant>, LedgerError> {
        let mut call = self.script.prepare_invoke();
        for request in requests {
            call.key([PREFIX, &request.id].concat());
            let wanted = f64::from(request.wanted) - f64::from(request.given_back);
            let fields: [f64; FIELDS] = [request.rate.per_second, request.rate.burst, wanted];
            for field in fields {
                call.arg(field);
            }
        }
        let mut connection = self.connection.clone();
        let answers: Vec<String> = call
            .invoke_async(&mut connection)
            .await
            .map_err(|error| LedgerError(error.category().to_owned()))?;
        answers.iter().map(|answer| read(answer)).collect()
    }
}

fn read(answer: &str) -> Result<LedgerGrant, LedgerError> {
    let numbers = || {
        let (granted, level) = answer.split_once(' ')?;
        Some(LedgerGrant {
            granted: granted.parse().ok()?,
            level: level.parse().ok()?,
        })
    };
    numbers().ok_or_else(|| LedgerError("its answer cannot be read".to_owned()))
}
