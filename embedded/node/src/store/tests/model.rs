//! What a gate stores at a time, and a model of what it stands at.

use super::*;

/// What a gate stores at a time.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    /// A raise, a grant, a release or an epoch; where a mark is lost, the operator's epoch above it.
    Mark(u8, GrantRecord),
    Latch(Latched),
    /// A boot in which somebody speaks, and one that goes on until the gate has rested.
    Count,
    Rest,
    /// A provisioning, its pieces in an order that the number says.
    Provision(Box<Provisioning>, u64),
}

/// What a gate has been told that it stands at.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) provisioning: Provisioning,
    pub(super) boots: u32,
    /// Where the boot counter was lost and no boot was counted since, what it stood at before.
    pub(super) before: Option<Box<Self>>,
    pub(super) latched: Latched,
    pub(super) marks: Vec<Remembered>,
}

impl Model {
    pub(super) fn new() -> Self {
        let provisioning = provisioning(0);
        let marks =
            provisioning.channels.iter().map(|c| Remembered::Mark(GrantRecord::floor(c.epoch, c.floor))).collect();
        Self { provisioning, boots: 1, before: None, latched: Latched::default(), marks }
    }

    /// What it stands at after `operation`.
    pub(super) fn after(&self, operation: &Operation) -> Self {
        let mut next = self.clone();
        match operation {
            Operation::Mark(channel, mark) => next.marks[usize::from(*channel)] = Remembered::Mark(*mark),
            Operation::Latch(latched) => next.latched = *latched,
            Operation::Count | Operation::Rest => (next.boots, next.before) = (self.boots + 1, None),
            Operation::Provision(provisioning, _) => {
                next.provisioning = (**provisioning).clone();
                let longest = provisioning.gate.longest_window;
                for (n, channel) in provisioning.channels.iter().enumerate() {
                    let floor = FenceRecord::floor(channel.epoch, channel.floor);
                    match self.marks.get(n) {
                        None => next.marks.push(Remembered::Mark(GrantRecord { mark: floor, ttl: longest })),
                        Some(Remembered::Mark(GrantRecord { mark, ttl })) => {
                            let mark = if floor.order(mark).is_some_and(Ordering::is_gt) { floor } else { *mark };
                            next.marks[n] = Remembered::Mark(GrantRecord { mark, ttl: longest.max(*ttl) });
                        }
                        Some(Remembered::Lost(_)) => {}
                    }
                }
            }
        }
        next
    }

    /// The boot counter is lost, and with it everything that goes up; `next` is what the next boot has made up.
    pub(super) fn lose_boots(&mut self, next: u32) {
        self.before = Some(Box::new(self.clone()));
        self.boots = next - 1;
        self.marks.iter_mut().for_each(|mark| *mark = Remembered::Lost(seen(mark)));
    }

    /// Takes what a boot has found, which takes no mark back that is known, and no number of a boot. What is lost is no lower.
    pub(super) fn learn(&mut self, memory: &Memory) {
        assert!(memory.boots > self.boots, "boot {} after {}", memory.boots, self.boots);
        for (n, found) in memory.marks.iter().enumerate() {
            match (self.marks.get_mut(n), found) {
                (None, _) => self.marks.push(*found),
                (Some(_), Remembered::Lost(_)) => {}
                (Some(known), Remembered::Mark(mark)) => {
                    let order = mark.mark.order(&seen(known));
                    assert!(order.is_some_and(Ordering::is_ge), "channel {n} from {known:?} to {mark:?}");
                    *known = *found;
                }
            }
        }
    }

    /// Something that a gate does next.
    pub(super) fn operation(&self, random: &mut Random) -> Operation {
        let channel = random.below(self.provisioning.channels.len());
        let number = u8::try_from(channel).unwrap();
        let Remembered::Mark(at) = self.marks[channel] else {
            return Operation::Mark(number, self.restored(channel, random));
        };
        let name = HolderId::new(["a", "press-b", "sixteen-bytes-xx"][random.below(3)]).unwrap();
        let token = at.mark.token + 1 + random.next() % [1, 1, 100, 1 << 40][random.below(4)];
        let raised = FenceRecord { token, holder: Some(name), released: false, ..at.mark };
        let to = match random.below(16) {
            0 => return self.provisioned(random),
            1 => return Operation::Count,
            2 => return Operation::Rest,
            // A stop or a contact, and a rearm.
            9 => {
                let [inhibited, astray] = [(); 2].map(|()| (random.next() & random.next()).to_le_bytes()[0] & 3);
                return Operation::Latch(Latched { serial: self.latched.serial + 1, inhibited, astray });
            }
            3 | 4 if at.mark.holder.is_some() => {
                GrantRecord { mark: FenceRecord { released: true, ..at.mark }, ttl: Duration::ZERO }
            }
            5 => GrantRecord::floor(Epoch(at.mark.epoch.0 + 1), random.next() % 1_000),
            6..=8 => GrantRecord { mark: raised, ttl: Duration::from_micros(1 + random.next() % 60_000_000) },
            _ => GrantRecord { mark: raised, ttl: Duration::ZERO },
        };
        Operation::Mark(number, to)
    }

    /// The operator's epoch on a channel whose mark is lost.
    pub(super) fn restored(&self, channel: usize, random: &mut Random) -> GrantRecord {
        let above = Epoch(seen(&self.marks[channel]).epoch.0 + 1);
        let ttl = [Duration::ZERO, Duration::from_secs(60)][random.below(2)];
        GrantRecord { ttl, ..GrantRecord::floor(above, random.next() % 1_000) }
    }

    /// Another provisioning; the epochs and floors of some of its channels are above where they stand.
    fn provisioned(&self, random: &mut Random) -> Operation {
        let variant = self.provisioning.gate.keys.id.wrapping_add(1 + random.next().to_le_bytes()[0] % 2);
        let mut next = provisioning(variant);
        for (n, channel) in next.channels.iter_mut().enumerate() {
            let at = self.marks.get(n).map_or(FenceRecord::floor(Epoch(0), 0), seen);
            (channel.epoch, channel.floor) = match random.below(4) {
                0 => (Epoch(at.epoch.0 + 1), random.next() % 1_000),
                1 => (at.epoch, at.token + random.next() % 1_000),
                _ => (Epoch(0), 0),
            };
        }
        Operation::Provision(Box::new(next), random.next())
    }
}

/// Where a mark was seen last.
pub(super) const fn seen(mark: &Remembered) -> FenceRecord {
    match mark {
        Remembered::Mark(mark) => mark.mark,
        Remembered::Lost(mark) => *mark,
    }
}

/// Whether it is no mixture of two provisionings. (Where the first marks stand is not looked at.)
pub(super) fn is_one(found: &Provisioning) -> bool {
    let mut plain = found.clone();
    plain.channels.iter_mut().for_each(|channel| (channel.epoch, channel.floor) = (Epoch(0), 0));
    plain == provisioning(found.gate.keys.id)
}

pub(super) fn run<F: Part>(store: &mut Store<F>, operation: &Operation) -> Result<(), StoreError> {
    match operation {
        Operation::Mark(channel, mark) => put(store, *channel, *mark),
        Operation::Latch(latched) => {
            let entry = Entry::Latched(*latched);
            block_on(store.put(&entry)).map(|stored| assert_eq!(stored, Stored::read_back(entry)))
        }
        // Whoever boots has booted; what is cut is the count.
        Operation::Count => match block_on(store.boot()) {
            Boot::Gate(_, memory) => block_on(store.count(memory.boots)),
            other => panic!("{other:?}"),
        },
        Operation::Rest => run(store, &Operation::Count).and_then(|()| block_on(store.rest(2))),
        Operation::Provision(provisioning, order) => provision_in_order(store, provisioning, &mut Random(*order)),
    }
}

/// Provisions, the pieces in any order, and the whole last.
pub(super) fn provision_in_order<F: NorFlash>(
    store: &mut Store<F>,
    provisioning: &Provisioning,
    order: &mut Random,
) -> Result<(), StoreError> {
    let mut entries = entries(provisioning);
    let whole = entries.pop();
    while !entries.is_empty() {
        let entry = entries.swap_remove(order.below(entries.len()));
        assert_eq!(block_on(store.put(&entry))?, Stored::read_back(entry));
    }
    let whole = whole.unwrap();
    block_on(store.put(&whole)).map(|stored| assert_eq!(stored, Stored::read_back(whole)))
}
