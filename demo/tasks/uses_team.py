# Copyright (C) The nginx-dsa authors

"""Services of people who make programs: issues, builds, deployments, logs."""

from tasks import names
from tasks.api import FIELDS, parameter, service
from tasks.uses import kinds, loosely, one_of


FIELDS.update({
    'issue': 'key id issue ticket number',
    'assignee': 'assignee assigned_to owner responsible',
    'priority': 'priority prio severity importance',
    'branch': 'branch ref branch_name',
    'author': 'author triggered_by user started_by',
    'errors': 'errors error_count failures count',
    'newest': 'message last_message newest text line',
})

PROJECT = ('[web|api|shop|billing|search|mobile|docs|login|mail|payment|admin'
           '|data|image|chat|{noun}]-[app|server|service|site|worker|ui|core'
           '|gateway|jobs|{noun}]')


def project(rng):
    return one_of(rng, PROJECT).format(noun=rng.choice(names.NOUNS))


def key(rng):
    return one_of(rng, f'{one_of(rng, "WEB|OPS|APP|DEV|BUG|SHOP|DATA|CORE")}-'
                       f'{rng.randrange(10, 9999)}|#{rng.randrange(10, 9999)}')


ISSUE = service('issues', '''[get|fetch|read|show|lookup] [issue|ticket|bug|jira issue]
[issue|ticket|bug|jira|tracker] [get|status|details|lookup|read]
[acme|team|helpdesk] [ticket|issue] [get|info]''',
'''[Returns|Gets|Reads] [an issue|a ticket] by its [key|number]
[State|Status], [assignee|owner] and [priority|title] of [a ticket|an issue]
[Issue tracker|Ticket system][: look up one ticket|]
Use this when [a ticket number|an issue key] is [mentioned|given]''', [
    parameter('issue', 'key id issue ticket issue_key ticket_id number '
              'issueId ref', '[Key|Number] of the [issue|ticket][, e.g. '
              'WEB-12|]')],
    'issue title state assignee priority')


def issue_case(rng):
    return dict(issue=key(rng), title=one_of(
        rng, f'[broken|slow|missing|wrong|empty] {rng.choice(names.NOUNS)} '
             '[page|button|list|form|link|image|report]'),
        state=one_of(rng, 'open|closed|in progress|in review|blocked'
                          '|resolved|waiting|reopened'),
        assignee=f'{rng.choice(names.FIRST)} {rng.choice(names.LAST)}',
        priority=one_of(rng, 'low|normal|high|urgent|critical|minor'))


TEAM = kinds(ISSUE, issue_case, '''
= find the state of {issue}
@ issue
- What is the [state|status] of {issue}?
- Is {issue} [done|closed|fixed] yet?
- {issue}?
- How far is {issue}?
- status of {issue} pls
- Look up the ticket {issue} and tell me where it stands.
- A customer asks about {issue}. What's its status?
- Has anybody started with {issue}? Give me its state.
- Can you check whether {issue} is still open?
- I reported {issue} some time ago. What became of it?
- whats happening with {issue}
- The ticket is {issue}. In which state is it?
- We want to release, but not without {issue}. Is that finished?
- Please tell me if {issue} has been resolved.
- Check issue {issue}.
- I'm waiting for {issue}. Any progress?
- Before the standup: state of {issue}?
- {issue} - still open?
- My customer waits for {issue}; any news on its status?
- Where are we with {issue}?
- I'd like an update on {issue}.
- Could you see how {issue} is doing?
- Was {issue} closed already?
> {issue} is {state}.
> [It is|The state is|The status is] {state}.
> [The ticket|The issue] {issue} is {state}.
> {issue}: {state}
> [Right now|At the moment] {issue} is {state}.
> [It|{issue}] has the status "{state}".
> [The tracker says|I see]: {state}.
> Status of {issue}: {state}.
+ {state}

= find out who works on {issue}
@ issue
- Who [works on|is assigned to|has] {issue}?
- To whom is {issue} assigned?
- Whose [ticket|issue] is {issue}?
- assignee of {issue}?
- who's on {issue}
- I have a question about {issue}. Whom should I ask?
- {issue}: who takes care of it?
- Please look up who is responsible for {issue}.
- Somebody must have taken {issue}. Who?
- Name the person who has {issue}.
- Is anyone on {issue}? Who is it?
- I'd like to offer help with {issue} and need to know who has it.
- tell me the owner of ticket {issue}
- Which colleague is dealing with {issue}?
- Who will fix {issue}?
- Who should I talk to about {issue}?
- Find the assignee of the ticket {issue}.
- Did somebody take {issue}? Name, please.
- {issue} is whose job?
- Is it {issue} that nobody wants? Or has it an assignee? Who?
> {assignee}.
> {assignee} [works on it|is assigned|has it|has {issue}].
> [It is|That is] {assignee}.
> {issue} is assigned to {assignee}.
> {issue}: {assignee}
> The assignee is {assignee}.
> [Ask|You can ask] {assignee}.
> {assignee} takes care of {issue}.
+ {assignee}

= find the priority of {issue}
@ issue
- What is the priority of {issue}?
- How [urgent|important] is {issue}?
- {issue} priority?
- Which priority does {issue} have?
- Do I have to look at {issue} today? Tell me its priority.
- prio of {issue} pls
- How was {issue} ranked? I mean the priority.
- Look up {issue}: is it urgent?
- My boss asks how urgent {issue} is.
- The priority of the ticket {issue}, please.
- Is {issue} a critical one? Check its priority.
- In what order should I work? Tell me the priority of {issue}.
- Please find out with which priority {issue} was filed.
- Is {issue} important?
- Severity of {issue}?
- Should we drop everything for {issue}? Its priority, please.
- {issue}: low, normal or high?
- With which urgency is {issue} listed?
- What does the tracker say, how urgent is {issue}?
- I sort my work by priority. Where does {issue} belong?
- Was {issue} filed as urgent or not? The priority, please.
- {issue} - do we need it today? Look up its priority.
> [It is|The priority is] {priority}.
> {priority}[.|]
> {issue} has the priority {priority}.
> {issue}: {priority}
> [The tracker says|It says] {priority}.
> Priority of {issue}: {priority}.
> [The ticket|The issue] has priority "{priority}".
> The priority of {issue} is {priority}.
+ {priority}

= find out what {issue} is about
@ issue
- What is {issue} about?
- Which problem is {issue}?
- title of {issue}?
- Remind me what {issue} was.
- Somebody mentioned {issue} in the meeting. What is that?
- {issue} - what was that again
- I only have the number {issue}. What is the title?
- Read me the title of {issue}.
- The commit says it fixes {issue}. Which issue is this?
- Please look up the subject of {issue}.
- What did they report in {issue}? The title is enough.
- {issue} means nothing to me. Tell me its title.
- {issue}, title?
- Can you tell me what's behind {issue}?
- I have to explain {issue} to my boss. What is its title?
- Which bug hides behind the number {issue}?
- What does {issue} say? Only the title.
- Title of {issue}, please.
- What did we call {issue} again?
- somebody sent me {issue} without a word, what is it
- In a word, what's {issue}? Read me its title.
- Which topic does {issue} have? I mean the title.
> It is about "{title}".
> "{title}"[.|]
> {issue} is "{title}".
> {issue}: {title}
> [The title is|It is called] "{title}".
> [The ticket|The issue] says "{title}".
> [Its subject|The subject] is "{title}".
> That is the {title}.
+ {title}
''', 'issue', loosely)

OPEN = service('new issues', '''[create|open|file|report|new] [issue|ticket|bug|bug report]
[issue|ticket|bug|jira|tracker] [create|open|new|add]
[acme|team|helpdesk] [ticket|issue] [create|open]''',
'''[Creates|Opens|Files] [an issue|a ticket][ in the tracker|]
[Reports|Report] a [bug|problem] to the team
[Issue tracker|Helpdesk][: new ticket|]
Use this [to report something that is broken|for new problems]''', [
    parameter('project', 'project repo repository component queue board',
              '[The|] [project|component]'),
    parameter('title', 'title summary subject headline name',
              '[One line|Title|Short summary]'),
    parameter('priority', 'priority prio severity', 'How urgent it is',
              choices=('low', 'normal', 'high'), needed=False)])


def open_case(rng):
    return dict(project=project(rng), title=one_of(
        rng, f'{{noun}} [page|list|form|menu|button] is [slow|empty|broken'
             f'|missing|cut off|in the wrong place]|cannot [open|close|save'
             f'|print|share] the {{noun}} [page|file|report|list]|typo in '
             f'the {{noun}} [text|title|help]|{{noun}} [image|icon|link] does '
             f'not [load|fit|work]|add the {{noun}} [filter|view|setting]'
        ).format(noun=rng.choice(names.NOUNS)))


TEAM += kinds(OPEN, open_case, '''
= open an issue "{title}" for {project}
@ project title
- [Open|Create|File] [an issue|a ticket] for {project}: "{title}".
- New [bug|ticket|issue] in {project}: "{title}"
- [Please|Can you] report "{title}" for {project}?
- {project} has a problem: "{title}". Make a ticket.
- I found a bug in {project}. File it as "{title}".
- ticket pls: {project}, "{title}"
- Write a ticket with the title "{title}" for the project {project}.
- Let the team of {project} know by a ticket: "{title}"
- Something for {project}: "{title}". Put that into the tracker.
- We need an issue about this. Project {project}, title "{title}".
- A customer complained about {project}. Open an issue titled "{title}".
- "{title}" should be a ticket in {project}.
- Add to the tracker of {project}: "{title}".
- Could you create a bug report? It is {project}, and the summary is "{title}".
- file a bug against {project}, title: "{title}"
- I don't have access to the tracker. Please open "{title}" in {project} for me.
- Log a bug for {project}: "{title}".
- In {project}, {title}. Create a ticket with exactly this title.
- Please put "{title}" on the list of {project}'s issues.
- Ticket title: {title}. Project: {project}. Please file it.
- I would like to have "{title}" tracked for {project}.
> [The ticket|The issue] "{title}" is open[ for {project}|].
> [Done|OK|Filed]: "{title}".
> I [opened|filed|created] "{title}"[ for {project}|].
> {project} has a new [issue|ticket]: "{title}".
> "{title}" [was filed|is in the tracker].
> There is a ticket now: "{title}".
> [All right|Sure], "{title}" is reported.
> I have reported "{title}".
+ {title}
''', '', loosely)

BUILD = service('builds', '''[get|check|show|fetch] [build|pipeline|ci status|build status|job]
[ci|build|pipeline|jenkins|workflow] [status|get|last run|info|check]
[acme|team] ci [build|status]''',
'''[Returns|Gets|Shows] the [last|latest|newest] build of a project
[State|Result] and [duration|branch] of the [last|newest] [pipeline|CI run]
[CI|Continuous integration][: state of a project|]
Use this to see if [a build is green|the tests pass]''', [
    parameter('project', 'project repo repository name pipeline job app',
              '[The|Name of the] project')],
    'state minutes branch author')


def build_case(rng):
    return dict(project=project(rng), minutes=rng.randrange(2, 95),
                state=one_of(rng, 'passed|failed|successful|canceled|broken'),
                branch=one_of(rng, f'main|master|develop|{project(rng)}'),
                author=rng.choice(names.FIRST))


TEAM += kinds(BUILD, build_case, '''
= find the state of the build of {project}
@ project
- [Is|Has] the build of {project} [green|passed|failed|through]?
- What is the state of the last build of {project}?
- {project} build?
- Did the tests of {project} pass?
- how's the pipeline of {project} doing
- Check the CI of {project}.
- I pushed to {project}. Did it build?
- Can I merge? Tell me the build status of {project}.
- Please look at the last run of {project}. How did it end?
- status of ci for {project} pls
- Does {project} still build?
- We see red on the screen. Is that {project}? Look at its build.
- What came out of the last build of {project}?
- Was the pipeline for {project} successful?
- Is it safe to release {project}? Have a look at its build.
- Last build, {project}: which state?
- Green or red, {project}?
- {project}, is CI happy?
- The last pipeline of {project}: passed or failed?
- We're about to ship {project}. What does its build say?
- Has {project}'s build finished well?
> [It|The build] [is|has the state]: {state}.
> The build of {project}: {state}.
> {state}[.|]
> [Last build|Status] of {project}: {state}
> {project}: {state}.
> [The CI says|It says] "{state}".
> The state of the [last build|newest run] is "{state}".
> [I looked|I checked]: {state}.
+ {state}

= find out how long the build of {project} took
@ project
- How long did the [last|latest] build of {project} take?
- How many minutes does {project} take to build?
- duration of the {project} build?
- The build of {project} seems slow. How long was it?
- {project} build time pls
- For how long did the pipeline of {project} run?
- Time of the last CI run for {project}, in minutes?
- I have to wait for {project}. How long does a build take? The last one will do.
- Is the build of {project} faster now? Give me the minutes.
- Look up how many minutes the last run of {project} needed.
- Did the new machine help {project}? How long did the last build take?
- We pay for build minutes. How many were it for {project} last time?
- {project}: how many minutes was the last build?
- Builds of {project} take how long? Tell me about the last one.
- The last pipeline of {project} ran for how many minutes?
- I'd like to know the build time for {project}.
- Is it worth to wait for {project}'s build? How long did it take?
- build of {project}: duration?
- How slow is CI for {project}? The minutes of the last run, please.
- {project} built in how many minutes?
- Tell me the minutes that {project} needed to build.
- My coffee took as long as the build of {project}. How long was that?
> {minutes} minutes[.|]
> [It took|The build took|The last one took] {minutes} minutes.
> {project} [took|needed] {minutes} minutes.
> [The last build|The build of {project}] ran for {minutes} minutes.
> {project}: {minutes} minutes
> Build time: {minutes} minutes.
> [It was|That was] {minutes} minutes.
> After {minutes} minutes it was [over|through].
+ {minutes}

= find out who started the build of {project}
@ project
- Who started the [last|latest] build of {project}?
- By whom was {project} built last?
- whos behind the last build of {project}
- The build of {project} broke something. Who ran it?
- Whose build is the newest one of {project}?
- Somebody keeps starting builds of {project}. Who was it last?
- Name the person who triggered the pipeline of {project}.
- I want to ask about the last build of {project}. Who started it?
- Who was the last to build {project}?
- Look up the author of the newest {project} run.
- person who triggered {project}'s ci?
- Please tell me who did the last build of {project}.
- {project}'s last build, started by?
- Which colleague triggered CI for {project}?
- The latest pipeline in {project} has an author. Who is it?
- Tell me the name behind the last {project} build.
- Somebody is building {project}. Who?
- Name whoever ran the newest build of {project}.
- The last run of {project} was triggered by whom?
- I need to thank someone for the build of {project}. Who started it?
- {project}: author of the last build?
> {author}[ started it| did|].
> [It was|That was] {author}.
> {author} started the build of {project}.
> The build [was started by|is by] {author}.
> {project}: {author}
> Started by {author}.
> [The last one|The newest build] is by {author}.
> {author} ran it.
+ {author}
''', 'project')

DEPLOY = service('deployments', '''[deploy|release|ship|rollout] [service|app|version|project|]
[deployment|release|deploy] [create|start|run|trigger]
[acme|k8s|cloud|platform] [deploy|rollout|release]''',
'''[Deploys|Releases|Rolls out] a version[ of a project|] to an environment
[Starts|Triggers] a deployment
[Deployment|Release] [tool|service][: project, version, target|]
Puts a [version|build] [on|onto] [a server|an environment]''', [
    parameter('project', 'project service app name application component',
              '[The|] [project|service]'),
    parameter('version', 'version tag release ref image_tag',
              '[The|] version[, e.g. 1.2.3|]'),
    parameter('target', 'environment env target stage where to',
              '[The|] [environment|stage]', choices=(
                  'production', 'staging', 'testing'))])


def deploy_case(rng):
    return dict(project=project(rng), version=f'{rng.randrange(9)}.'
                f'{rng.randrange(30)}.{rng.randrange(20)}',
                target=one_of(rng, 'production|staging|testing'))


TEAM += kinds(DEPLOY, deploy_case, '''
= deploy {project} {version} to {target}
@ project version target
- Deploy {project} {version} to {target}.
- [Release|Ship|Roll out] {version} of {project} to {target}.
- [Please|Can you] put version {version} of {project} on {target}?
- {project} {version} -> {target}
- {target} should run {project} {version}. Deploy it.
- deploy pls: {project}, {version}, {target}
- The tests are green, so bring {project} {version} to {target}.
- Version {version} of {project} is approved for {target}. Go ahead and deploy.
- We agreed to have {version} of {project} in {target} today. Start the deployment.
- Update {project} in {target} to version {version}.
- Start a deployment: project {project}, version {version}, environment {target}
- On {target} there is an old {project}. Replace it by {version}.
- {project} goes to {target} with version {version}, please.
- I'd like {version} of {project} to be deployed. The environment is {target}.
- Let us try {project} {version} in {target}; deploy it there.
- For {target}: {project}, version {version}. Roll it out.
- Can {project} go to {target} in version {version}? Do it, please.
- {version} is the version of {project} I want in {target}.
- Please make {target} run {version} of {project}.
- Put {project} {version} live in {target}.
- New release! {project}, {version}. It goes to {target}.
> {project} {version} is [deployed|on its way] to {target}.
> [Done|OK|Deployed]: {project} {version} to {target}.
> I [deployed|released] {project} {version} to {target}.
> {target} [gets|has] {project} {version} now.
> The deployment of {project} {version} to {target} [is done|has started].
> Version {version} of {project} is [in|on] {target} now.
> [All right|Sure], {project} {version} goes to {target}.
> [Rolled out|Released]: {project} {version}, {target}.
+ {project}; {version}; {target}
''', 'version')

ERRORS = service('logs', '''[search|query|read|get] [logs|log|log entries|errors]
[logs|log|kibana|loki|errors] [search|query|get|count|read]
[acme|ops] logs [search|query]''',
'''[Searches|Reads] the logs of a service
[Count|Number] of errors and the newest [message|line] of a service
[Log|Error] [search|overview] [by service|]
Use this [to see why a service fails|for errors in production]''', [
    parameter('project', 'service app source project name application',
              '[The|Name of the] service'),
    parameter('hours', 'hours since_hours last_hours window', 'How far back',
              kind='integer', needed=False)],
    'errors newest')


def errors_case(rng):
    return dict(project=project(rng), errors=rng.randrange(2, 3000),
                newest=one_of(rng, f'cannot [open|read|find|reach] {{noun}}'
                              f'|timeout [of|in|after] {{noun}}|{{noun}} is '
                              f'[full|missing|locked|not valid]|unexpected '
                              f'{{noun}}|lost the {{noun}}').format(
                                  noun=rng.choice(names.NOUNS)))


TEAM += kinds(ERRORS, errors_case, '''
= count the errors of {project}
@ project
- How many errors does {project} have?
- Count the errors of {project}.
- {project} errors?
- Are there errors in the logs of {project}? How many?
- number of errors in {project} pls
- Since the release, {project} acts up. How many errors are in its log?
- Check the logs of {project} and tell me the number of errors.
- How often did {project} fail?
- Is {project} healthy? Give me the count of its errors.
- I need the error count of {project} for the report.
- Do the logs of {project} show many errors? How many?
- Our users see errors in {project}. How many are logged?
- how bad is it with {project}, number of errors
- {project}: error count, please.
- How many failures did {project} log?
- Does {project} fail a lot? The number of errors, please.
- Ask the logs how many errors {project} has.
- Errors logged by {project}?
- I look after {project}. How many errors do I have to face?
> {errors}[ errors|].
> [There are|It has|I count] {errors} errors.
> {project} has {errors} errors.
> {project}: {errors} errors
> [The log shows|The logs have] {errors} errors.
> {errors} errors [were logged|are in the log].
> [The number is|That makes] {errors}.
> Errors of {project}: {errors}.
+ {errors}

= find the newest error of {project}
@ project
- What is the [last|newest|latest] error of {project}?
- Why does {project} fail? [Show me the newest error.|The last message, please.]
- Look into the logs of {project}. What does the newest message say?
- {project} last error?
- whats wrong with {project}, last log message pls
- Read me the last error that {project} logged.
- {project} crashed. Which error came last?
- Show me the most recent error from {project}.
- The page of {project} is blank. What is in its log? The last error will do.
- With which message did {project} fail most recently?
- I am looking for the cause of a problem in {project}. Tell me the newest error.
- Get the latest error line of {project}.
- Latest message in {project}'s log?
- The error that {project} logged last, what does it say?
- What did {project} complain about most recently?
- tail the log of {project}, newest error please
- I see {project} is failing; with what message?
- Latest error in {project}, please.
- What is the reason that {project} fails? See the newest line of its log.
- Which message do the logs of {project} have last?
- {project} woke me up at night. With which error?
- Read out the newest error that {project} has logged.
> [It is|It says|The message is]: {newest}.
> "{newest}"[.|]
> {project} says "{newest}".
> {project}: {newest}
> The [newest|last] error is "{newest}".
> [In the log|There] it says "{newest}".
> [The log|The newest line] says: {newest}.
> Last error of {project}: {newest}
+ {newest}
''', 'project')
