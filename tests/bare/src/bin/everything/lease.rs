//! Both ends of a lease: the holder and the grantor, the plan that a holder lives by, and a budget.

use crate::*;
use fencegate::{
    Budget, GateTiming, GrantEpoch, GrantProof, GrantRecord, GrantRelease, GrantTerms, Granting, Grantor, Holder,
    Limits, OutOfRange, Permit, Plan, PlanInput, RaiseBudget, Request, Schedule, Start, WindowInput,
};

pub(crate) fn leases() {
    plans();
    if let Some(schedule) = any(None::<Schedule>) {
        schedules(schedule);
        holders(schedule);
    }
    grantors();
    budgets();
}

fn plans() {
    call!(WindowInput::new(us(), drift()));
    let mut plan = Plan::for_ttl(us());
    plan = PlanInput::drift(plan, drift());
    plan = PlanInput::round_trip(plan, us());
    plan = PlanInput::start(plan, any(Start::Grant));
    plan = PlanInput::attempts(plan, n());
    plan = PlanInput::work(plan, us());
    plan = PlanInput::poll(plan, us());
    let plan = any(PlanInput { clock_offset: us(), pause: us(), ..plan });
    call!(PlanInput::build(&plan));
    call!(PlanInput::lease(&plan), PlanInput::plan(&plan), WindowInput::window(&any(PlanInput::lease(&plan))));

    let gate = GateTiming { drift: drift(), lateness: us(), reaction: us(), longest_window: us() };
    call!(GateTiming::window(&any(gate), us()));

    let error = any(OutOfRange::Drift);
    call!(OutOfRange::field(error), OutOfRange::reason(error));
}

fn schedules(s: Schedule) {
    call!(
        Schedule::ttl(&s),
        Schedule::window(&s),
        Schedule::heartbeat(&s),
        Schedule::cancel_after(&s),
        Schedule::ask_again(&s),
    );
}

fn holders(schedule: Schedule) {
    let mut h = Holder::new(schedule, holder());
    h = Holder::progress_within(h, us());
    h = any(Holder::longest_hold(h, us()));
    let request = any(Request::from_number(n()));
    call!(Request::number(request));
    Holder::sent(&mut h, at(), request);
    Holder::granted(&mut h, at(), request, stamp(), any(Some(us())));
    Holder::renewed(&mut h, at(), request, any(Some(us())));
    Holder::refused(&mut h, at(), request, any(Some(us())), any(1));
    Holder::lost(&mut h, at(), request, any(1));
    Holder::released(&mut h, at(), stamp());
    Holder::revoked(&mut h, at(), stamp());
    Holder::raised(&mut h, at(), stamp());
    Holder::fenced(&mut h, at(), stamp());
    Holder::progress(&mut h, at());
    Holder::stopped(&mut h, at());
    Holder::hand_over(&mut h, at(), us());
    Holder::stop(&mut h, at());
    call!(
        Holder::id(&h),
        Holder::schedule(&h),
        Holder::stamp(&h),
        Holder::deadline(&h),
        Holder::is_done(&h),
        Holder::poll(&mut h, at()),
    );
    if let Ok(permit) = any(Holder::may_act(&mut h, at(), us())) {
        call!(Permit::stamp(&permit), Permit::deadline(&permit), Permit::ends(&permit));
        call!(Holder::covers(&mut h, at(), &permit));
    }
    call!(h);
}

fn grant() -> GrantRecord {
    any(GrantRecord { mark: record(), ttl: us() })
}

fn grantors() {
    call!(GrantRecord::floor(any(Epoch(0)), n()));
    let terms =
        any(GrantTerms { drift: drift(), lock_delay: us(), longest_ttl: us(), epoch_jump: any(Limits::EPOCH_JUMP) });
    let Ok(mut g) = any(Grantor::boot(any(Some(grant())), terms, at())) else { return };
    call!(Grantor::record(&g), Grantor::current(&g, at()), Grantor::ends(&g), Grantor::wait(&g, at()));
    call!(Grantor::renew(&mut g, at(), stamp()));
    if let Ok(granting) = Grantor::acquire(&mut g, at(), holder(), us()) {
        call!(Granting::record(&granting));
        call!(Grantor::commit(&mut g, at(), any(granting), GrantProof::read_back(grant())));
    }
    if let Ok(release) = Grantor::release(&mut g, at(), stamp()) {
        call!(GrantRelease::record(&release));
        call!(Grantor::commit_release(&mut g, at(), any(release), GrantProof::read_back(grant())));
    }
    if let Ok(epoch) = Grantor::raise_epoch(&mut g, at(), any(Epoch(1)), n()) {
        call!(GrantEpoch::record(&epoch));
        call!(Grantor::commit_epoch(&mut g, at(), any(epoch), GrantProof::read_back(grant())));
    }
    Grantor::lose_storage(&mut g);
    call!(g);
}

fn budgets() {
    let mut budget = any(Budget::full(any(RaiseBudget { burst: any(1), every: us() }), at()));
    call!(Budget::allows(&mut budget, at()), Budget::wait(&mut budget, at()));
    Budget::spend(&mut budget);
    call!(budget);
}
