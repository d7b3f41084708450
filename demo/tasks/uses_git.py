# Copyright (C) The nginx-dsa authors

"""Commands of git for the shell."""

from tasks.uses_shell import shell_kinds


GIT = shell_kinds(r'''
= find the git branch
$ git branch --show-current
< {branch}
- [Which|What] [git |]branch [am I on|is checked out|are we on]?
- What's the current branch?
- Print the git branch.
- branch?
- which branch rn
- Am I on main or somewhere else? Tell me the branch.
- [Please|Can you] look up the branch that I am on.
- Before I commit: on which branch are we?
- I switched around so often. Which branch is this?
- What does git say the current branch is?
- Tell me the name of the branch in this repository.
- I need the branch name for the pull request.
- In which branch of the repo do I work at the moment?
- Run git branch --show-current.
- My changes are gone, maybe it is the wrong branch. Which one is checked out?
- Check the git branch, please.
- the name of the branch pls
- On what branch did I leave this repository?
- Which branch would a commit go to now?
- Could you see what branch we're on in git?
- git says I'm on a branch. Which?
- Tell me where HEAD is, I mean the branch.
- Is this still my feature branch? What is it called?
- I am about to push. What's the branch?
- Branch name, please.
> [It is|You are on|We are on|The branch is] {branch}.
> {branch}[.|]
> [Checked out is|On] {branch}.
> The current branch is {branch}.
> [Branch|Current branch]: {branch}
> According to git, you are on {branch}.
> [Right now|Currently] you are on {branch}.
> You work on {branch}.
+ {branch}

= make the git branch {branch}
$ git checkout -b {branch}
< Switched to a new branch '{branch}'
- [Create|Make] a [new |]branch [called |]{branch} and switch to it.
- Start a new branch, {branch}.
- git checkout -b {branch}
- New branch {branch}, please, and check it out.
- I want to work on a new branch, {branch}.
- [Please|Can you] open a new branch {branch} in git?
- Branch off from here. The name is {branch}.
- For this feature I need my own branch: {branch}. Create it and go there.
- Put me on a fresh branch named {branch}.
- new git branch pls, name {branch}
- Let's not do this on main. Make a branch {branch} and check it out.
- We need the branch {branch}. It does not exist yet. Create it and switch.
- Would you branch here? Call it {branch} and check it out.
- Use git to create and check out {branch}, which is new.
- Create branch: {branch} (and switch)
- Begin a new branch with the name {branch}.
- Let me work on something new in {branch}, a branch that you create.
- {branch} is going to be my new branch. Make and check it out.
- Fork off a branch from here and name it {branch}.
- Open {branch} for me, it's a new branch.
- Please branch: {branch}
- I don't want to break main. Give me a branch {branch}.
- The ticket asks for a new branch {branch}; create it in git and change to it.
> [You are|We are] on [the new branch |]{branch}[ now|].
> [Done|OK|Created]: {branch}.
> I [made|created] [the branch |]{branch}.
> The [new |]branch {branch} is [there|checked out].
> [Switched to|Now on] {branch}.
> {branch} was created[ and checked out|].
> [All right|Sure], you are on {branch}.
> There is a new branch, {branch}.
+ {branch}

= switch to the git branch {branch}
$ git checkout {branch}
< Switched to branch '{branch}'
- [Switch|Change] to [the branch |]{branch}.
- Check out {branch}.
- git checkout {branch}
- Go to the branch {branch}.
- [Please|Can you] check out the branch {branch} for me?
- I want to look at {branch}. Switch to it in git.
- Take me to the branch {branch}.
- checkout {branch} pls
- My colleague works on {branch}. Check that branch out.
- We are on the wrong branch, it should be {branch}. Switch.
- Move over to {branch} in the repository.
- Let us continue on the branch {branch}.
- The branch that I need is {branch}; check it out.
- Switch branches: {branch}
- Go back to branch {branch}, please.
- Use git to change to {branch}.
- {branch} exists already. Go there.
- git: over to {branch}
- Show me the state of {branch}, that is, check it out.
- I'd like to be on {branch}.
- Would you change the branch to {branch}?
- Leave this branch, and check out {branch}.
- Let's have a look at branch {branch}; switch.
> [You are|We are] on {branch}[ now|].
> [Done|OK|Switched]: {branch}.
> I [checked out|switched to] {branch}.
> [Switched to|Now on] {branch}.
> {branch} is checked out.
> [The branch is|It is] {branch} now.
> [All right|Sure], you are on {branch}.
> The repository is on {branch}.
+ {branch}

= commit with the message "{note}"
$ git commit -m "{note}"
< [main {hash}] {note}\n 1 file changed
- Commit with the message "{note}".
- Commit [what is staged|this|my changes]: "{note}"
- git commit, message "{note}"
- Make a commit "{note}".
- [Please|Can you] commit that with "{note}" as its message?
- Everything is added. Commit it as "{note}".
- I staged my work. Now commit; the message should be "{note}".
- commit msg: "{note}"
- Record the staged changes as "{note}".
- My message is "{note}". Make the commit.
- Save this as a commit that says "{note}".
- Would you create a git commit? Message: "{note}"
- The index is ready, so commit with "{note}".
- pls commit, "{note}"
- I'd like to commit what I have staged under the title "{note}".
- Put the staged files into a commit called "{note}".
- "{note}" - please commit under this message.
- Time to commit. "{note}" is the text.
- The staged work is a commit: "{note}"
- Write history: commit "{note}".
- One commit, please. Its message says "{note}".
- Finish this with a commit, "{note}".
- What I added should be committed as "{note}", can you do it?
> [Committed|Done]: {hash}, "{note}".
> The commit is {hash}.
> [I made|There is] the commit {hash}.
> {hash} [is committed|has your changes].
> "{note}" is committed as {hash}.
> [OK|All right], committed as {hash}.
> Your commit [is|has the hash] {hash}.
> [Committed|Saved] as {hash}.
+ {hash}

= stage {inner}
$ git add {inner}
- Stage {inner}.
- git add {inner}
- Add {inner} to git.
- [Please|Can you] stage the file {inner}?
- {inner} should be in the next commit. Stage it.
- Put {inner} into the index.
- I changed {inner} and want to commit it later. Add it first.
- Let git track {inner}.
- {inner} is not tracked yet; add it in git.
- Use git to add {inner}.
- git add pls: {inner}
- Mark {inner} for the next commit.
- Of my changes, stage only {inner}.
- The file {inner} is new. Add it to the repository's index.
- Would you add "{inner}" to the staging area?
- Prepare {inner} for a commit.
- I'd like {inner} to be part of what I commit next, so add it.
- {inner} -> index
- Don't commit yet, only add {inner}.
- One file to stage, {inner}.
- Please take {inner} into git.
- The change in {inner} is fine; stage that.
> {inner} is [staged|added].
> [Done|OK|Staged]: {inner}.
> I [staged|added] {inner}.
> {inner} will be in the next commit.
> [All right|Sure], {inner} is staged.
> git [has|knows] {inner} now.
> [Staged|Added] {inner}.
> {inner} [was|has been] added.
+ {inner}

= find the last commit
$ git log -1 --oneline
< {hash} {note}
- What was the last commit?
- Show [me |]the [last|latest|newest] commit.
- git log -1
- Which commit is the newest?
- What did we commit last?
- last commit?
- whats the latest commit here
- [Please|Can you] look up the last commit in this repository.
- Tell me the message of the last commit.
- Somebody committed something. What does the newest commit say?
- I forgot what I did last. Read me the last commit.
- The message of HEAD?
- Look at the log of git: what's on top?
- With which commit does the history end?
- I need the hash and the message of the last commit.
- Before I continue, what was my last commit about?
- HEAD is which commit?
- What's at the tip of the branch?
- Show the top of the git history.
- Newest commit, hash and text?
- The history's last entry, please.
- My colleague committed a minute ago. What was it?
> [It is|The last commit is] {hash}: {note}.
> {hash} {note}
> The last commit[, {hash},|] says "{note}" ({hash}).
> "{note}" ({hash})[.|]
> [The newest|The latest] is {hash}, "{note}".
> Last commit: {hash} - {note}
> git log shows {hash} {note}.
> You committed "{note}" as {hash}.
+ {hash}
+ {note}

= find out who made the last commit
$ git log -1 --format=%an
< {person}
- Who made the last commit?
- By whom is the [last|latest] commit?
- Who committed last?
- Author of the last commit?
- whos the author of HEAD
- [Please|Can you] find out who wrote the newest commit.
- The build is red. Who made the last commit?
- I want to thank whoever committed last. Who was it?
- Tell me the name of the author of the last commit.
- Look into the git log: who was last?
- Who changed the repository last?
- Last committer pls
- The newest commit looks odd. Whose is it?
- Name the author of the most recent commit.
- Was the last commit by me? Give me the author's name.
- Find the author of the topmost commit in git.
- The latest change was by whom?
- Who was it that committed most recently?
- Whose work is at HEAD?
- I need a name, the author of the last commit.
- git: last author?
- Who touched this repository most recently?
> [It was|The author is] {person}.
> {person}[.|]
> {person} [made it|committed last].
> The last commit is by {person}.
> [By|It is by] {person}.
> [Author|Last author]: {person}
> git names {person}.
> The [author|name] is {person}.
+ {person}

= count the commits
$ git rev-list --count HEAD
< {n}
- How many commits does [this|the] repository have?
- Count the commits.
- Number of commits?
- how many commits so far
- [Please|Can you] count the commits of this branch.
- I wonder how many commits we have made.
- What's the number of commits in the history?
- Tell me how many commits there are in this repo.
- Is it an old repository? How many commits has it?
- git: commit count
- For the release notes I need the number of commits.
- How long is the history, in commits?
- We celebrate round numbers. How many commits are there now?
- Count all the commits up to HEAD.
- How often did somebody commit here?
- the count of commits in git pls
- The number of commits up to now?
- Are there more than a hundred commits? Count them.
- commit count pls
- How many steps does our history have? I mean commits.
- I am curious how many commits led to this state.
> {n}[ commits|].
> [There are|It has|I count] {n}[ commits|].
> The repository has {n} commits.
> [The number is|That makes] {n}.
> Commits: {n}
> [In all|So far|Up to now], {n}.
> git counts {n} commits.
> The history has {n} commits.
+ {n}

= get the newest commits from the server
$ git pull
< Updating {hash}..HEAD\nFast-forward\n {few} files changed
- git pull[ please|]
- Pull [the latest changes|the newest commits].
- Get the latest version from the remote. How many files changed?
- [Please|Can you] pull and say how many files have changed?
- Update my working copy from the server.
- Somebody pushed. Pull it.
- Bring the repository up to date.
- pull pls
- My branch is behind; pull.
- Fetch and merge what is new on the remote.
- I've been away for a week. Update this repository with git.
- We should have the newest code here. Pull it, please.
- Do a git pull and tell me the number of changed files.
- Sync my clone with the remote.
- Get me what my colleagues have pushed.
- Is there anything new upstream? Pull it and count the files.
- Are we behind? Pull.
- Load what is new from the remote, and say how many files it touched.
- The others have pushed their work. Get it.
- Please refresh this repository by a pull.
- git should fetch and merge now.
> [Pulled|Done|Updated]: {few} files changed.
> {few} files [have changed|changed].
> I pulled, [and|with] {few} [files changed|changed files].
> [The repository|Everything] is up to date; {few} files changed.
> [It is|You are] up to date, {few} files changed.
> The pull changed {few} files.
> git pull: {few} files changed
> [All right|OK], {few} files were updated.
+ {few}

= set the tag {tag}
$ git tag {tag}
- Tag this as {tag}.
- git tag {tag}
- Set the tag {tag}.
- [Please|Can you] tag the current commit with {tag}?
- We release {tag} today. Set the git tag.
- Create a tag {tag}.
- Mark the current commit as {tag}.
- This is {tag}. Tag it in git.
- New tag: {tag}
- tag it {tag} pls
- The commit we are on should get the tag {tag}.
- The release is called {tag}, and it needs its tag.
- Put a tag named {tag} on HEAD.
- I'd like to have the tag {tag} here.
- Would you add the tag {tag} to the last commit?
- Use git to make a tag, {tag}.
- {tag} shall be the tag of this commit.
- Release day! The tag is {tag}.
- We call this state {tag}. Put the tag there.
- {tag}: tag it
- I need a git tag that says {tag}.
> [The commit|It] is tagged {tag}.
> [Done|OK|Tagged]: {tag}.
> I set the tag {tag}.
> The tag {tag} [is set|exists].
> {tag} is [set|there].
> [All right|Sure], {tag} is tagged.
> There is a tag {tag} now.
> HEAD has the tag {tag}.
+ {tag}

= merge {branch}
$ git merge {branch}
< Merge made by the 'ort' strategy.\n {few} files changed
- Merge {branch}[ into the current branch|].
- git merge {branch}
- [Please|Can you] merge the branch {branch}?
- {branch} is ready. Merge it into this branch.
- I want what is on {branch} in my branch, so merge it.
- Bring {branch} into the current branch.
- merge {branch} pls
- The work on {branch} is finished and reviewed. Merge it here.
- Take over all changes from {branch} by a merge.
- We can merge {branch} now.
- Use git to merge {branch} into where we are.
- Join the branch {branch} with ours.
- My boss approved {branch}. Do the merge.
- Would you do a merge? The branch is {branch}.
- Merge branch: {branch}
- Let us merge {branch} today. Do it, please.
- All of {branch} should come into my branch.
- {branch} has passed all tests. You may merge it.
- Take {branch} in.
- Do we need {branch} in here? Yes. Merge it.
- Let {branch} flow into the current branch.
> {branch} is merged[: {few} files changed|].
> [Merged|Done]: {branch}.
> I merged {branch}.
> The merge of {branch} [worked|is done].
> [All right|OK], {branch} is merged.
> {branch} [has been|was] merged.
> The current branch has {branch} now.
> [The changes|All changes] of {branch} are here.
+ {branch}

= find the file that was changed
$ git status --short
<  M {inner}
- Which [file|files] did I change?
- What has changed in the repository?
- git status[ please|]
- Are there changes that are not committed? Which file?
- [Please|Can you] check what I modified.
- What did I touch since the last commit?
- uncommitted changes?
- whats modified in the working tree
- I can't remember what I edited. Ask git.
- Is the working tree clean? If not, what is changed?
- See which file git shows as modified.
- Before I go home: did I leave something uncommitted?
- Show me the status of the repository.
- Look what is modified but not committed.
- Git will not let me switch branches. What have I changed?
- Name the files with local changes.
- Is anything dirty in the working tree? What?
- I edited something, but what? git status, please.
- Which file has not been committed yet?
- Show me what differs from the last commit, just the name of the file.
- local changes?
- Something is modified here. Name it.
> [You changed|Changed is|Modified is] {inner}.
> {inner}[ is modified| was changed|].
> [It is|Only] {inner}[ has changed|].
> [There is|I see] one change: {inner}.
> git lists {inner}[ as modified|].
> Modified: {inner}
> {inner} has changes that are not committed.
> [The file|] {inner} [is not committed|has been edited].
+ {inner}
''')
