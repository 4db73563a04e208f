//! Everything that can happen in a world: the branches that the checker takes.

use super::config::Config;
use super::world::{Action, Condition, World};

impl World {
    /// Everything that can happen next.
    pub(crate) fn actions(&self, config: &Config, actions: &mut Vec<Action>) {
        if self.tick < config.horizon && self.network.iter().all(|message| message.due > self.tick) {
            actions.extend((0..if config.wander > 0 { 4 } else { 1 }).map(Action::Tick));
        }
        let mut last = None;
        for message in &self.network {
            if last == Some(message) {
                continue;
            }
            last = Some(message);
            if self.can_deliver(message) {
                actions.push(Action::Deliver(*message));
                if self.left.repeats > 0 {
                    actions.push(Action::Repeat(*message));
                }
            }
            if self.left.losses > 0 {
                actions.push(Action::Lose(*message));
            }
        }
        for (who, node) in (0..).zip(&self.nodes) {
            match node.condition {
                Condition::Running => {
                    if self.left.acts > 0 && self.permits(config, usize::from(who)) {
                        actions.push(Action::Act(who));
                    }
                    for (left, action) in [
                        (self.left.pauses, Action::Pause(who)),
                        (self.left.crashes, Action::Crash(who)),
                        (self.left.hangs, Action::Hang(who)),
                        (self.left.stops, Action::Stop(who)),
                        (self.left.hand_overs, Action::HandOver(who)),
                    ] {
                        if left > 0 {
                            actions.push(action);
                        }
                    }
                }
                Condition::Paused => actions.push(Action::Resume(who)),
                Condition::Crashed if self.left.restarts > 0 => actions.push(Action::Restart(who)),
                Condition::Hung | Condition::Crashed => {}
            }
        }
        if self.coordinator.storing.is_some() {
            actions.push(Action::Store);
        }
        if self.resource.storing.is_some() {
            actions.push(Action::ResourceStore);
        }
        if self.left.cuts > 0 {
            actions.push(Action::Cut);
            if self.coordinator.storing.is_some() {
                actions.push(Action::CutStored);
            }
            if config.resource {
                actions.push(Action::ResourceCut);
                if self.resource.storing.is_some() {
                    actions.push(Action::ResourceCutStored);
                }
            }
        }
        if self.left.restores > 0 && self.coordinator.storing.is_none() && self.resource.storing.is_none() {
            actions.push(Action::Restore);
        }
    }
}
