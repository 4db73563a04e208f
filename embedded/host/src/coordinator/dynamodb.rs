//! DynamoDB: an item, written under conditions; the token is a number in it that counts.
//!
//! DynamoDB tells nobody the time, and no two wall clocks are compared here. Each write gives the item a new random `version`.
//! Who finds the item in another's hands remembers its version and when the answer had come; finds it unchanged after the
//! TTL that lies in the item, on its own boot-time clock; and takes over on the condition that the version still is that one.
//! What had been written before it was first seen has then been over for as long, and what is written later changes the
//! version. So a take-over waits a whole TTL from when the challenger first looked, however long the holder has been dead.
//!
//! The item of the lock `NAME` has the table's partition key `lock` (a string), and `token`, `holder`, `ttl_us`, `held`,
//! `version`, and in `asked` who has asked for it. A release sets `held` to false and keeps the item: **an item that is
//! deleted forgets its count**, and then the operator raises the epoch, a number in the attribute `epoch`, which comes with
//! the token in one step:
//! `aws dynamodb update-item --table-name locks --key '{"lock": {"S": "press-7"}}' --update-expression 'SET epoch = :e'
//! --expression-attribute-values '{":e": {"N": "1"}}'`. Keep TTL deletion off, and the table in one Region: a global table
//! that agrees eventually gives the lock once in each.
//!
//! Credentials and endpoint come from where AWS's own tools have them. A call is sent once: the client's retries are off.

use super::asked::Asked;
use super::{Acquired, Call, Coordinator, CoordinatorError, Grant, Renewed};
use crate::clock;
use aws_config::retry::RetryConfig;
use aws_config::{BehaviorVersion, Region};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue};
use aws_smithy_http_client::tls;
use fencegate::{Duration, Epoch, HolderId, Instant, Stamp, Token};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use tokio::sync::OnceCell;

/// Takes the lock: from nobody, or from what was seen.
const TAKE: &str = "SET #token = if_not_exists(#token, :zero) + :one, #holder = :holder, #ttl = :ttl, #held = :yes, \
                    #asked = :asked, #version = :version";
const RENEW: &str = "SET #ttl = :ttl, #version = :version";
const RELEASE: &str = "SET #held = :no, #version = :version";
const NEW: &str = "attribute_not_exists(#version)";
const UNCHANGED: &str = "#version = :seen";
const OURS: &str = "#token = :token AND #holder = :holder AND #held = :yes";

/// One lock in a table.
pub struct Dynamodb {
    region: String,
    table: String,
    name: String,
    holder: HolderId,
    asked: Asked,
    client: OnceCell<Client>,
    /// The version that was seen in another's hands, and since when it is known.
    seen: Mutex<Option<(String, Instant)>>,
}

/// An item as it was read.
struct Item {
    token: u64,
    /// `None`: what lies there is none.
    epoch: Option<Epoch>,
    holder: String,
    asked: String,
    held: bool,
    ttl: Duration,
    version: String,
}

impl Item {
    fn epoch(&self) -> Result<Epoch, CoordinatorError> {
        self.epoch.ok_or_else(|| unfit("epoch: the item's `epoch` has to be a number of 32 bits".to_owned()))
    }
}

impl std::fmt::Debug for Dynamodb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { table, name, holder, .. } = self;
        f.debug_struct("Dynamodb")
            .field("table", table)
            .field("name", name)
            .field("holder", holder)
            .finish_non_exhaustive()
    }
}

impl Dynamodb {
    /// The lock `name` in `table` in an AWS Region, for `holder`. The table has to be there; credentials are looked for, and a
    /// connection made, when they are needed.
    pub fn new(region: &str, table: &str, name: &str, holder: HolderId) -> Self {
        let (region, table, name) = (region.to_owned(), table.to_owned(), name.to_owned());
        let (asked, client, seen) = (Asked::default(), OnceCell::new(), Mutex::new(None));
        Self { region, table, name, holder, asked, client, seen }
    }

    async fn client(&self) -> &Client {
        self.client
            .get_or_init(|| async {
                let provider = tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring);
                let http = aws_smithy_http_client::Builder::new().tls_provider(provider).build_https();
                let config = aws_config::defaults(BehaviorVersion::latest()).region(Region::new(self.region.clone()));
                Client::new(&config.http_client(http).retry_config(RetryConfig::disabled()).load().await)
            })
            .await
    }

    fn key(&self) -> AttributeValue {
        AttributeValue::S(self.name.clone())
    }

    async fn look(&self) -> Result<Option<Item>, CoordinatorError> {
        let get = self.client().await.get_item().table_name(&self.table).key("lock", self.key());
        let answer = get.consistent_read(true).send().await.map_err(|error| self.said(&error))?;
        let item = answer.item.filter(|item| item.contains_key("version"));
        item.as_ref().map(read).transpose()
    }

    /// A write under a condition, and the item after it; nothing where the condition does not hold.
    async fn write(
        &self,
        update: &str,
        condition: &str,
        values: impl IntoIterator<Item = (&str, AttributeValue)>,
    ) -> Result<Option<Item>, CoordinatorError> {
        let version =
            getrandom::u64().map_err(|why| CoordinatorError::NoAnswer(format!("no random numbers: {why}")))?;
        let write = self.client().await.update_item().table_name(&self.table).key("lock", self.key());
        let write = write.update_expression(update).condition_expression(condition).return_values(ReturnValue::AllNew);
        let write = write.expression_attribute_values(":version", AttributeValue::S(format!("{version:016x}")));
        let write =
            values.into_iter().fold(write, |write, (name, value)| write.expression_attribute_values(name, value));
        match named(write, &[update, condition].concat()).send().await {
            Ok(answer) => {
                let item = answer.attributes.ok_or_else(|| unfit("DynamoDB: an answer without the item".to_owned()))?;
                read(&item).map(Some)
            }
            Err(error) if is_refused(&error) => Ok(None),
            Err(error) => Err(self.said(&error)),
        }
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Option<(String, Instant)>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Since when this version is known to be there.
    fn known_since(&self, version: &str) -> Instant {
        let mut seen = self.seen();
        match seen.as_ref() {
            Some((last, since)) if last == version => *since,
            _ => {
                let now = clock::now();
                *seen = Some((version.to_owned(), now));
                now
            }
        }
    }

    async fn grant(&self, ttl: Duration) -> Result<Acquired, CoordinatorError> {
        let asking = self.asked.begin()?;
        let began = clock::start();
        let found = self.look().await?;
        found.as_ref().map(Item::epoch).transpose()?;
        if let Some(item) = found.as_ref().filter(|item| item.held) {
            // A take by an older fencegate leaves somebody's mark there.
            if item.holder == self.holder.to_string() && asking.may_undo(&item.asked, item.token) {
                // The answer to an earlier acquire was lost, and nobody knows since when its lease runs.
                self.give_back(item.token, &item.holder).await?;
                let why = "an earlier acquire had been granted unheard; it was undone";
                return Err(CoordinatorError::NoAnswer(why.to_owned()));
            }
            let over = self.known_since(&item.version).checked_add(item.ttl);
            let over = over.ok_or_else(|| unfit("DynamoDB: the item's ttl_us never ends".to_owned()))?;
            if clock::start() < over {
                return Ok(Acquired::Held { wait: over.since(began).ok(), by: HolderId::new(&item.holder).ok() });
            }
        }
        let mut values = vec![
            (":zero", number(0)),
            (":one", number(1)),
            (":holder", AttributeValue::S(self.holder.to_string())),
            (":asked", AttributeValue::S(asking.mark().to_owned())),
            (":ttl", number(ttl.as_micros())),
            (":yes", AttributeValue::Bool(true)),
        ];
        let condition = match found {
            Some(item) => {
                values.push((":seen", AttributeValue::S(item.version)));
                UNCHANGED
            }
            None => NEW,
        };
        let Some(item) = self.write(TAKE, condition, values).await? else {
            return Ok(Acquired::Held { wait: None, by: None }); // somebody was faster
        };
        let token = Token::new(item.token).ok_or_else(|| unfit("DynamoDB: the count gave no token".to_owned()))?;
        let epoch = match item.epoch() {
            Ok(epoch) => epoch,
            Err(why) => {
                // The epoch was written since the look, or before there was a lock. Nobody would hold it.
                let _ = self.give_back(item.token, &item.holder).await;
                return Err(why);
            }
        };
        asking.grant(token);
        Ok(Acquired::Granted(Grant { token, epoch, ttl: Some(ttl) }))
    }

    async fn keep(&self, stamp: Stamp, ttl: Duration) -> Result<Renewed, CoordinatorError> {
        let values = ours(stamp.token.get(), &stamp.holder.to_string()).into_iter();
        let renewed = self.write(RENEW, OURS, values.chain([(":ttl", number(ttl.as_micros()))])).await?;
        Ok(if renewed.is_some() { Renewed::Renewed { ttl: Some(ttl) } } else { Renewed::Gone })
    }

    async fn give_back(&self, token: u64, holder: &str) -> Result<(), CoordinatorError> {
        let values = ours(token, holder).into_iter().chain([(":no", AttributeValue::Bool(false))]);
        self.write(RELEASE, OURS, values).await.map(drop)
    }

    /// What the client means.
    fn said<E: ProvideErrorMetadata + std::error::Error + 'static>(
        &self,
        error: &SdkError<E, HttpResponse>,
    ) -> CoordinatorError {
        let SdkError::ServiceError(answer) = error else {
            let why = DisplayErrorContext(error).to_string();
            // Without its structure, which goes on for pages.
            let why = why.split(" (").next().unwrap_or_default().to_owned();
            if why.contains("no providers in chain provided credentials") {
                return unfit(
                    "DynamoDB: there are no credentials in the environment, in AWS's files, or for this machine"
                        .to_owned(),
                );
            }
            return match error {
                SdkError::ConstructionFailure(_) => unfit(format!("DynamoDB: {why}")),
                _ => CoordinatorError::NoAnswer(format!("DynamoDB: {why}")),
            };
        };
        let status = answer.raw().status().as_u16();
        let (code, message) =
            (answer.err().code().unwrap_or("no code"), answer.err().message().unwrap_or("no message"));
        let table = &self.table;
        match code {
            "ResourceNotFoundException" => unfit(format!(
                "DynamoDB: there is no table `{table}` in {}: make one with the partition key `lock`, a string",
                self.region
            )),
            "ValidationException" => unfit(format!(
                "DynamoDB: {message}: the table `{table}` has to have the partition key `lock`, a string, and no sort key"
            )),
            _ if matches!(status, 401 | 403)
                || code.contains("AccessDenied")
                || code.contains("Token")
                || code.contains("Signature")
                || code.contains("UnrecognizedClient")
                || code.contains("OptIn") =>
            {
                unfit(format!("DynamoDB: not allowed (HTTP {status}, {code}): {message}"))
            }
            _ => CoordinatorError::NoAnswer(format!("DynamoDB: HTTP {status}, {code}: {message}")),
        }
    }
}

impl Coordinator for Dynamodb {
    fn acquire(&self, ttl: Duration) -> Call<'_, Acquired> {
        Box::pin(self.grant(ttl))
    }

    fn renew(&self, stamp: Stamp, ttl: Duration) -> Call<'_, Renewed> {
        Box::pin(self.keep(stamp, ttl))
    }

    fn release(&self, stamp: Stamp) -> Call<'_, ()> {
        Box::pin(async move { self.give_back(stamp.token.get(), &stamp.holder.to_string()).await })
    }
}

fn unfit(why: String) -> CoordinatorError {
    CoordinatorError::Unfit(why)
}

fn number(n: u64) -> AttributeValue {
    AttributeValue::N(n.to_string())
}

fn ours(token: u64, holder: &str) -> [(&'static str, AttributeValue); 3] {
    let holder = AttributeValue::S(holder.to_owned());
    [(":token", number(token)), (":holder", holder), (":yes", AttributeValue::Bool(true))]
}

/// The names that the text uses, and no others: one too many is an error.
fn named(write: UpdateItemFluentBuilder, text: &str) -> UpdateItemFluentBuilder {
    let names = [
        ("#token", "token"),
        ("#holder", "holder"),
        ("#asked", "asked"),
        ("#ttl", "ttl_us"),
        ("#held", "held"),
        ("#version", "version"),
    ];
    let used = names.into_iter().filter(|(name, _)| text.contains(name));
    used.fold(write, |write, (name, attribute)| write.expression_attribute_names(name, attribute))
}

fn is_refused<E: ProvideErrorMetadata, R>(error: &SdkError<E, R>) -> bool {
    matches!(error, SdkError::ServiceError(answer) if answer.err().code() == Some("ConditionalCheckFailedException"))
}

fn read(item: &HashMap<String, AttributeValue>) -> Result<Item, CoordinatorError> {
    let wrong = |name: &str| unfit(format!("DynamoDB: the item's `{name}` is missing or not what it has to be"));
    let text = |name: &str| item.get(name).and_then(|value| value.as_s().ok()).cloned().ok_or_else(|| wrong(name));
    let count = |name: &str| {
        let n = item.get(name).and_then(|value| value.as_n().ok()).and_then(|n| n.parse::<u64>().ok());
        n.ok_or_else(|| wrong(name))
    };
    let epoch = match item.get("epoch") {
        Some(_) => count("epoch").ok().and_then(|n| u32::try_from(n).ok()).map(Epoch),
        None => Some(Epoch(0)),
    };
    Ok(Item {
        token: count("token")?,
        epoch,
        holder: text("holder")?,
        asked: text("asked").unwrap_or_default(), // one that is older than marks has none
        held: item.get("held").and_then(|value| value.as_bool().ok()).copied().ok_or_else(|| wrong("held"))?,
        ttl: Duration::from_micros(count("ttl_us")?),
        version: text("version")?,
    })
}
